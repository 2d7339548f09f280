// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/entry_list.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "vtkv/util/invariants.h"

namespace vtkv {

// Layout in the arena: Node, key bytes, value bytes.
class EntryList::Node {
 public:
  std::atomic<Node*> link{nullptr};
  SequenceNumber sequence : 56;  // a thousand years of a million a second
  uint64_t packed_type : 4;
  uint64_t versions_before_indexed : 4;  // that follow it, of its key, before one that the tree knows; 0: it knows this
  uint32_t key_bytes;
  uint32_t value_bytes;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {bytes(), key_bytes}; }
  std::string_view value() const { return {bytes() + key_bytes, value_bytes}; }

  Node* next() const { return link.load(std::memory_order_acquire); }

  bool before(std::string_view other_key, SequenceNumber other_sequence) const {
    const int order = key().compare(other_key);
    return order < 0 || (order == 0 && sequence > other_sequence);
  }
};

namespace {

// The numbers of types are small, or their highest bit alone.
constexpr unsigned packed(EntryType type) {
  return (static_cast<uint8_t>(type) & 7) | (static_cast<uint8_t>(type) >> 4);
}
constexpr EntryType unpacked(unsigned packed) { return static_cast<EntryType>((packed & 7) | (packed & 8) << 4); }
static_assert(unpacked(packed(EntryType::logged_value)) == EntryType::logged_value);

// The eight bytes of `key` behind the first `skipped`, as a number that compares as they do; zeros behind the end.
uint64_t window_of(std::string_view key, size_t skipped) {
  uint64_t window = 0;
  if (skipped + sizeof(window) <= key.size()) {
    std::memcpy(&window, key.data() + skipped, sizeof(window));
  } else if (skipped < key.size()) {
    std::memcpy(&window, key.data() + skipped, key.size() - skipped);
  }
  return std::endian::native == std::endian::little ? __builtin_bswap64(window) : window;
}

}  // namespace

// A node of the tree. Cell i stands for what lies between its entry and that of cell i + 1. Every key that a search
// brings here begins with the same m_skipped bytes.
//
// Readers see a cell's fields change one by one; each is atomic for that, and a wrong choice is noticed at the entry.
class alignas(64) EntryList::Index {
 public:
  static constexpr int kCells = 15;

  Index(int level, const Node* low, size_t skipped)
      : m_low(low), m_skipped(static_cast<uint32_t>(skipped)), m_level(static_cast<uint16_t>(level)) {}

  static size_t bytes_shared(const Node* low, const Node* head, const Node* high) {
    if (low == head || !high) {
      return 0;
    }
    const std::string_view a = low->key(), b = high->key();
    return std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first - a.begin();
  }

  int level() const { return m_level; }
  int count() const { return m_count.load(std::memory_order_acquire); }
  bool full() const { return count() == kCells; }
  const Node* low() const { return m_low; }
  const Node* low_of(int cell) const { return m_level == 0 ? entry(cell) : child(cell)->m_low; }
  Node* entry(int cell) const { return static_cast<Node*>(m_cells[cell].load(std::memory_order_acquire)); }
  Index* child(int cell) const { return static_cast<Index*>(m_cells[cell].load(std::memory_order_acquire)); }

  void prefetch() const {
    for (size_t line = 0; line < sizeof(Index); line += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(this) + line);
    }
  }

  // The last cell before (key, sequence): the first one, unless another is.
  int cell_before(std::string_view key, SequenceNumber sequence) const {
    const uint64_t window = window_of(key, m_skipped.load(std::memory_order_relaxed));
    const int cells = count();
    int smaller = 1, equal = 0;  // without a branch that depends on a window
    for (int cell = 1; cell < cells; ++cell) {
      const uint64_t other = m_windows[cell].load(std::memory_order_relaxed);
      smaller += other < window;
      equal += other == window;
    }
    return cell_before_among(smaller, std::min(smaller + equal, cells), key, sequence);
  }

  // The same by the entries alone, which compare rightly whatever the writer is in the middle of.
  int cell_before_by_entries(std::string_view key, SequenceNumber sequence) const {
    return cell_before_among(1, count(), key, sequence);
  }

  // REQUIRES: those below `begin` are before it, those from `end` on are not.
  int cell_before_among(int begin, int end, std::string_view key, SequenceNumber sequence) const {
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (low_of(middle)->before(key, sequence)) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin - 1;
  }

  // REQUIRES: not full. All cells can be found in their order all the while.
  void insert(int cell, const Node* low, void* added) {
    const int cells = count();
    for (int moved = cells; moved > cell; --moved) {
      set(moved, m_cells[moved - 1].load(std::memory_order_relaxed),
          m_windows[moved - 1].load(std::memory_order_relaxed));
      if (moved == cells) {
        m_count.store(static_cast<uint16_t>(cells + 1), std::memory_order_release);
      }
    }
    set(cell, added, window_of(low->key(), m_skipped.load(std::memory_order_relaxed)));
    if (cell == cells) {
      m_count.store(static_cast<uint16_t>(cells + 1), std::memory_order_release);
    }
  }

  // REQUIRES: this one is empty, and no reader has seen it.
  void take_cells(const Index& other, int from) {
    for (int cell = from; cell < other.count(); ++cell) {
      insert(cell - from, other.low_of(cell), other.m_cells[cell].load(std::memory_order_relaxed));
    }
  }

  // Only `cells` stay, and no key comes here any more that does not begin with `shared` bytes like the rest.
  void cut(int cells, size_t shared) {
    m_count.store(static_cast<uint16_t>(cells), std::memory_order_release);
    if (shared < m_skipped.load(std::memory_order_relaxed) + kWindowSlack) {
      return;
    }
    m_skipped.store(static_cast<uint32_t>(shared), std::memory_order_relaxed);
    for (int cell = 1; cell < cells; ++cell) {
      m_windows[cell].store(window_of(low_of(cell)->key(), shared), std::memory_order_relaxed);
    }
  }

 private:
  static constexpr size_t kWindowSlack = 4;  // a window half of which tells keys apart is good enough

  void set(int cell, void* pointer, uint64_t window) {
    m_cells[cell].store(pointer, std::memory_order_release);
    m_windows[cell].store(window, std::memory_order_relaxed);
  }

  const Node* const m_low;
  std::atomic<uint32_t> m_skipped;
  std::atomic<uint16_t> m_count{0};
  const uint16_t m_level;  // 0: the cells are entries
  std::array<std::atomic<uint64_t>, kCells> m_windows;
  std::array<std::atomic<void*>, kCells> m_cells;
};

EntryList::EntryList(Arena* arena) : m_arena(arena), m_head(new_node(Entry{})) {
  static_assert(sizeof(Index) == 256);
  Index* root = new_index(0, m_head, nullptr);
  root->insert(0, m_head, m_head);
  m_root.store(root, std::memory_order_release);
}

EntryList::Node* EntryList::new_node(const Entry& entry) {
  VTKV_ASSERT(entry.key.size() <= UINT32_MAX && entry.value.size() <= UINT32_MAX && entry.sequence >> 56 == 0 &&
              unpacked(packed(entry.type)) == entry.type);
  static_assert(sizeof(Node) == 24);
  Node* node = new (m_arena->allocate(sizeof(Node) + entry.key.size() + entry.value.size())) Node;
  node->sequence = entry.sequence;
  node->key_bytes = static_cast<uint32_t>(entry.key.size());
  node->value_bytes = static_cast<uint32_t>(entry.value.size());
  node->packed_type = packed(entry.type);
  node->versions_before_indexed = 0;
  if (!entry.key.empty()) {
    std::memcpy(node->bytes(), entry.key.data(), entry.key.size());
  }
  if (!entry.value.empty()) {
    std::memcpy(node->bytes() + entry.key.size(), entry.value.data(), entry.value.size());
  }
  return node;
}

EntryList::Index* EntryList::new_index(int level, const Node* low, const Node* high) {
  if (m_free_indexes == 0) {
    m_free_indexes = m_root.load(std::memory_order_relaxed) ? kIndexesAtOnce : 1;  // most idle tables need one only
    m_free_index = m_arena->allocate_aligned(m_free_indexes * sizeof(Index), alignof(Index));
  }
  char* const memory = m_free_index;
  m_free_index += sizeof(Index);
  --m_free_indexes;
  return new (memory) Index(level, low, Index::bytes_shared(low, m_head, high));
}

EntryList::Node* EntryList::descend(std::string_view key, SequenceNumber sequence, Path* path) const {
  Index* index = m_root.load(std::memory_order_acquire);
  if (path) {
    path->height = index->level() + 1;
    VTKV_ASSERT(path->height < Path::kMaxHeight);
  }
  for (;;) {
    const int cell = index->cell_before(key, sequence);
    if (path) {
      path->steps[index->level()] = {index, cell};
    }
    if (index->level() == 0) {
      return index->entry(cell);
    }
    index = index->child(cell);
    index->prefetch();
  }
}

EntryList::Node* EntryList::descend_by_entries(std::string_view key, SequenceNumber sequence) const {
  Index* index = m_root.load(std::memory_order_acquire);
  while (index->level() > 0) {
    index = index->child(index->cell_before_by_entries(key, sequence));
  }
  return index->entry(index->cell_before_by_entries(key, sequence));
}

EntryList::Node* EntryList::find_before(std::string_view key, SequenceNumber sequence) const {
  Node* node = descend(key, sequence, nullptr);
  if (node != m_head && !node->before(key, sequence)) {
    // Misled by a node whose windows are just being changed. Who waited for that would wait for the writer.
    node = descend_by_entries(key, sequence);
  }
  return node;
}

const EntryList::Node* EntryList::high_end(const Path& path, int level) const {
  for (++level; level < path.height; ++level) {
    const auto& [index, cell] = path.steps[level];
    if (cell + 1 < index->count()) {
      return index->low_of(cell + 1);
    }
  }
  return nullptr;
}

void EntryList::add_to_index(const Path& path, int level, const Node* low, void* added) {
  if (level == path.height) {
    Index* old_root = m_root.load(std::memory_order_relaxed);
    Index* root = new_index(level, m_head, nullptr);
    root->insert(0, m_head, old_root);
    root->insert(1, low, added);
    m_root.store(root, std::memory_order_release);
    return;
  }
  const auto& [index, cell] = path.steps[level];
  if (!index->full()) {
    index->insert(cell + 1, low, added);
    return;
  }
  // Keys that ascend leave full nodes behind.
  const int kept = cell + 1 == Index::kCells ? Index::kCells : (Index::kCells + 1) / 2;
  Index* right = new_index(level, kept == Index::kCells ? low : index->low_of(kept), high_end(path, level));
  right->take_cells(*index, kept);
  const bool into_right = cell + 1 > kept || kept == Index::kCells;
  if (into_right) {
    right->insert(cell + 1 - kept, low, added);
  }
  add_to_index(path, level + 1, right->low(), right);
  index->cut(kept, Index::bytes_shared(index->low(), m_head, right->low()));
  if (!into_right) {
    index->insert(cell + 1, low, added);
  }
}

void EntryList::insert(const Entry& entry) {
  Path path;
  Node* before = descend(entry.key, entry.sequence, &path);
  Node* after = before->next();
  for (; after && after->before(entry.key, entry.sequence); after = after->next()) {
    before = after;
  }
  Node* node = new_node(entry);
  const bool is_newest = after && after->key() == entry.key && (before == m_head || before->key() != entry.key);
  node->versions_before_indexed =
      is_newest && after->versions_before_indexed < kUnindexedVersions ? after->versions_before_indexed + 1 : 0;
  node->link.store(after, std::memory_order_relaxed);
  before->link.store(node, std::memory_order_release);
  if (node->versions_before_indexed == 0) {
    add_to_index(path, 0, node, node);
  }
}

const EntryList::Node* EntryList::first() const { return m_head->next(); }

const EntryList::Node* EntryList::last() const {
  const Index* index = m_root.load(std::memory_order_acquire);
  while (index->level() > 0) {
    index = index->child(index->count() - 1);
  }
  const Node* node = index->entry(index->count() - 1);
  for (const Node* next = node->next(); next; next = node->next()) {
    node = next;
  }
  return node == m_head ? nullptr : node;
}

const EntryList::Node* EntryList::find(std::string_view key, SequenceNumber sequence) const {
  const Node* node = find_before(key, sequence)->next();
  while (node && node->before(key, sequence)) {
    node = node->next();
  }
  return node;
}

const EntryList::Node* EntryList::next(const Node* node) { return node->next(); }

const EntryList::Node* EntryList::previous(const Node* node) const {
  const Node* result = find_before(node->key(), node->sequence);
  // The tree may not have the latest yet, and entries with the same key and sequence follow one another.
  for (const Node* next = result->next(); next != node; next = result->next()) {
    result = next;
  }
  return result == m_head ? nullptr : result;
}

Entry EntryList::entry_of(const Node* node) {
  return {node->key(), node->sequence, unpacked(node->packed_type), node->value()};
}

}  // namespace vtkv
