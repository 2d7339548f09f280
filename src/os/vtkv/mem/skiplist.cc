#include "vtkv/mem/skiplist.h"

#include <cstring>
#include <new>

#include "vtkv/util/invariants.h"

namespace vtkv {

// Layout in the arena: Node, the upper links, key bytes, value bytes.
class SkipList::Node {
 public:
  SequenceNumber sequence;
  uint32_t key_bytes;
  uint32_t value_bytes;
  EntryType type;
  uint8_t height;

  std::atomic<Node*>* links() { return reinterpret_cast<std::atomic<Node*>*>(this + 1); }
  const std::atomic<Node*>* links() const { return reinterpret_cast<const std::atomic<Node*>*>(this + 1); }
  char* bytes() { return reinterpret_cast<char*>(links() + height); }
  const char* bytes() const { return reinterpret_cast<const char*>(links() + height); }
  std::string_view key() const { return {bytes(), key_bytes}; }
  std::string_view value() const { return {bytes() + key_bytes, value_bytes}; }

  Node* next(int level) const { return links()[level].load(std::memory_order_acquire); }

  bool before(std::string_view other_key, SequenceNumber other_sequence) const {
    const int order = key().compare(other_key);
    return order < 0 || (order == 0 && sequence > other_sequence);
  }
};

SkipList::SkipList(Arena* arena) : m_arena(arena), m_head(new_node(Entry{}, kMaxHeight)) {}

SkipList::Node* SkipList::new_node(const Entry& entry, int height) {
  VTKV_ASSERT(entry.key.size() <= UINT32_MAX && entry.value.size() <= UINT32_MAX);
  const size_t size =
      sizeof(Node) + height * sizeof(std::atomic<Node*>) + entry.key.size() + entry.value.size();
  Node* node = new (m_arena->allocate(size)) Node;
  node->sequence = entry.sequence;
  node->key_bytes = static_cast<uint32_t>(entry.key.size());
  node->value_bytes = static_cast<uint32_t>(entry.value.size());
  node->type = entry.type;
  node->height = static_cast<uint8_t>(height);
  for (int level = 0; level < height; ++level) {
    new (&node->links()[level]) std::atomic<Node*>(nullptr);
  }
  if (!entry.key.empty()) {
    std::memcpy(node->bytes(), entry.key.data(), entry.key.size());
  }
  if (!entry.value.empty()) {
    std::memcpy(node->bytes() + entry.key.size(), entry.value.data(), entry.value.size());
  }
  return node;
}

int SkipList::random_height() {
  m_random ^= m_random << 13;
  m_random ^= m_random >> 7;
  m_random ^= m_random << 17;
  int height = 1;
  for (uint64_t bits = m_random >> 16; height < kMaxHeight && (bits & 3) == 0; bits >>= 2) {
    ++height;
  }
  return height;
}

void SkipList::find_before(std::string_view key, SequenceNumber sequence, Node** before) const {
  Node* node = m_head;
  for (int level = m_height.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    for (Node* next = node->next(level); next && next->before(key, sequence); next = node->next(level)) {
      node = next;
    }
    before[level] = node;
  }
}

void SkipList::insert(const Entry& entry) {
  Node* before[kMaxHeight];
  find_before(entry.key, entry.sequence, before);
  const int height = random_height();
  for (int level = m_height.load(std::memory_order_relaxed); level < height; ++level) {
    before[level] = m_head;
  }
  if (height > m_height.load(std::memory_order_relaxed)) {
    // A reader that sees the new height too early finds null at the head and goes down.
    m_height.store(height, std::memory_order_relaxed);
  }
  Node* node = new_node(entry, height);
  for (int level = 0; level < height; ++level) {
    node->links()[level].store(before[level]->next(level), std::memory_order_relaxed);
    before[level]->links()[level].store(node, std::memory_order_release);
  }
}

const SkipList::Node* SkipList::first() const { return m_head->next(0); }

const SkipList::Node* SkipList::last() const {
  const Node* node = m_head;
  for (int level = m_height.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    for (const Node* next = node->next(level); next; next = node->next(level)) {
      node = next;
    }
  }
  return node == m_head ? nullptr : node;
}

const SkipList::Node* SkipList::find(std::string_view key, SequenceNumber sequence) const {
  Node* before[kMaxHeight];
  find_before(key, sequence, before);
  // The writer may have linked nodes behind before[0] since: walk to the first that is not before.
  const Node* node = before[0]->next(0);
  while (node && node->before(key, sequence)) {
    node = node->next(0);
  }
  return node;
}

const SkipList::Node* SkipList::next(const Node* node) { return node->next(0); }

const SkipList::Node* SkipList::previous(const Node* node) const {
  Node* before[kMaxHeight];
  find_before(node->key(), node->sequence, before);
  // Nodes with the same key and sequence follow one another: stop at the one whose successor is `node`.
  const Node* result = before[0];
  for (const Node* next = result->next(0); next != node; next = result->next(0)) {
    result = next;
  }
  return result == m_head ? nullptr : result;
}

Entry SkipList::entry_of(const Node* node) { return {node->key(), node->sequence, node->type, node->value()}; }

}  // namespace vtkv
