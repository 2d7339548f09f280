// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/mem/memtable.h"

#include <cstring>
#include <new>
#include <vector>

#include "vtkv/mem/entry_list.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// What the list holds for an entry of type logged_value; the value's bytes lie elsewhere, so that nodes stay small
// and searches touch little memory.
struct LoggedValue {
  LoggedBytes* shared = nullptr;    // the bytes, which may have been released; null: they are in the arena
  const LogAddress* address = nullptr;
  const char* data = nullptr;
  uint32_t length = 0;
  uint32_t offset = 0;  // from the address
  uint32_t crc32c = 0;  // of key and value

  static LoggedValue of(const Entry& entry) {
    LoggedValue value;
    std::memcpy(&value, entry.value.data(), sizeof(value));
    return value;
  }
  std::string_view bytes() const { return {data, length}; }
  bool pin() const { return !shared || shared->pin(); }
  void unpin() const {
    if (shared) {
      shared->unpin();
    }
  }
  // REQUIRES: the record was formed.
  void encode_pointer(std::string* out) const {
    VTKV_ASSERT(address->epoch > 0);
    out->clear();
    ValuePointer{address->segment_id, address->epoch, address->offset + offset, length, crc32c}.encode(out);
  }
};

// Of values that were never kept: nobody can pin them.
LoggedBytes* released_bytes() {
  class Released final : public LoggedBytes {
   public:
    Released() { (void)release(); }

   private:
    void free_bytes() override {}
  };
  static Released released;
  return &released;
}

}  // namespace

class MemTable::Rep {
 public:
  Arena arena;
  EntryList list{&arena};
  RangeTombstones tombstones;
  std::atomic<bool> empty{true};
  std::atomic<uint64_t> entries{0};
  std::atomic<SequenceNumber> last_sequence{0};

  struct Kept {
    std::shared_ptr<LoggedBytes> bytes;
    size_t capacity;
  };
  std::vector<Kept> kept;  // the writer's
  size_t released = 0;     // of them, from the front
  std::atomic<size_t> kept_bytes{0};

  void insert(const Entry& entry) {
    list.insert(entry);
    entries.fetch_add(1, std::memory_order_relaxed);
    advance(entry.sequence);
  }

  void insert_logged(SequenceNumber sequence, std::string_view key, const LoggedValue& value) {
    insert({key, sequence, EntryType::logged_value, {reinterpret_cast<const char*>(&value), sizeof(value)}});
  }

  void advance(SequenceNumber sequence) {
    VTKV_ASSERT(sequence >= last_sequence.load(std::memory_order_relaxed));
    last_sequence.store(sequence, std::memory_order_relaxed);
    empty.store(false, std::memory_order_release);
  }
};

namespace {

class MemTableIterator final : public EntryIterator {
 public:
  explicit MemTableIterator(const EntryList& list) : m_list(list) {}
  ~MemTableIterator() override { unpin(); }

  bool valid() const override { return m_node != nullptr; }
  void seek_to_first() override { move(m_list.first()); }
  void seek_to_last() override { move(m_list.last()); }
  void seek(std::string_view key, SequenceNumber at_most) override { move(m_list.find(key, at_most)); }
  void next() override { move(EntryList::next(m_node)); }
  void previous() override { move(m_list.previous(m_node)); }
  const Entry& entry() const override { return m_entry; }
  Status status() const override { return {}; }

 private:
  void move(const EntryList::Node* node) {
    unpin();
    m_node = node;
    if (!node) {
      return;
    }
    m_entry = EntryList::entry_of(node);
    if (m_entry.type != EntryType::logged_value) {
      return;
    }
    const LoggedValue value = LoggedValue::of(m_entry);
    if (value.pin()) {
      m_pinned = value.shared;
      m_entry.type = EntryType::value;
      m_entry.value = value.bytes();
    } else {
      value.encode_pointer(&m_pointer);
      m_entry.type = EntryType::value_pointer;
      m_entry.value = m_pointer;
    }
  }
  void unpin() {
    if (m_pinned) {
      m_pinned->unpin();
      m_pinned = nullptr;
    }
  }

  const EntryList& m_list;
  const EntryList::Node* m_node = nullptr;
  LoggedBytes* m_pinned = nullptr;  // the current value's
  Entry m_entry;
  std::string m_pointer;
};

class FlushIterator final : public EntryIterator {
 public:
  explicit FlushIterator(const EntryList& list) : m_list(list) {}

  bool valid() const override { return m_node != nullptr; }
  void seek_to_first() override { move(m_list.first()); }
  void next() override { move(EntryList::next(m_node)); }
  const Entry& entry() const override { return m_entry; }
  Status status() const override { return {}; }
  void seek_to_last() override { VTKV_ASSERT(!"forward only"); }
  void seek(std::string_view, SequenceNumber) override { VTKV_ASSERT(!"forward only"); }
  void previous() override { VTKV_ASSERT(!"forward only"); }

 private:
  void move(const EntryList::Node* node) {
    m_node = node;
    if (!node) {
      return;
    }
    m_entry = EntryList::entry_of(node);
    if (m_entry.type == EntryType::logged_value) {
      LoggedValue::of(m_entry).encode_pointer(&m_pointer);
      m_entry.type = EntryType::value_pointer;
      m_entry.value = m_pointer;
    }
  }

  const EntryList& m_list;
  const EntryList::Node* m_node = nullptr;
  Entry m_entry;
  std::string m_pointer;
};

}  // namespace

MemTable::MemTable() : m_rep(std::make_unique<Rep>()) {}
MemTable::~MemTable() = default;

void MemTable::put(SequenceNumber sequence, std::string_view key, std::string_view value) {
  m_rep->insert({key, sequence, EntryType::value, value});
}

void MemTable::put_logged(SequenceNumber sequence, std::string_view key, std::string_view value,
                          const LogAddress* address, uint32_t offset) {
  char* copy = m_rep->arena.allocate(value.size());
  std::memcpy(copy, value.data(), value.size());
  m_rep->insert_logged(
      sequence, key, {nullptr, address, copy, static_cast<uint32_t>(value.size()), offset, value_checksum(key, value)});
}

void MemTable::put_shared(SequenceNumber sequence, std::string_view key, std::string_view value, LoggedBytes* bytes,
                          uint32_t offset) {
  m_rep->insert_logged(
      sequence, key,
      {bytes, &bytes->address, value.data(), static_cast<uint32_t>(value.size()), offset, value_checksum(key, value)});
}

void MemTable::put_unkept(SequenceNumber sequence, std::string_view key, std::string_view value,
                          const LogAddress* address, uint32_t offset) {
  m_rep->insert_logged(
      sequence, key,
      {released_bytes(), address, nullptr, static_cast<uint32_t>(value.size()), offset, value_checksum(key, value)});
}

void MemTable::keep(const std::shared_ptr<LoggedBytes>& bytes, size_t capacity) {
  if (m_rep->kept.empty() || m_rep->kept.back().bytes != bytes) {
    m_rep->kept.push_back({bytes, capacity});
    m_rep->kept_bytes.fetch_add(capacity, std::memory_order_relaxed);
  }
}

void MemTable::release_kept(SequenceNumber logged, size_t budget) {
  while (m_rep->released < m_rep->kept.size() && m_rep->kept_bytes.load(std::memory_order_relaxed) > budget) {
    const Rep::Kept& oldest = m_rep->kept[m_rep->released];
    if (oldest.bytes->last_sequence > logged || !oldest.bytes->release()) {
      return;
    }
    m_rep->kept_bytes.fetch_sub(oldest.capacity, std::memory_order_relaxed);
    ++m_rep->released;
  }
}

size_t MemTable::kept_bytes() const { return m_rep->kept_bytes.load(std::memory_order_relaxed); }

LogAddress* MemTable::new_address() { return new (m_rep->arena.allocate(sizeof(LogAddress))) LogAddress; }

void MemTable::remove(SequenceNumber sequence, std::string_view key) {
  m_rep->insert({key, sequence, EntryType::tombstone, {}});
}

void MemTable::remove_range(SequenceNumber sequence, std::string_view begin, std::string_view end) {
  m_rep->tombstones.add(sequence, begin, end);
  m_rep->advance(sequence);
}

Lookup MemTable::get(std::string_view key, SequenceNumber at_most, std::string* value) const {
  const SequenceNumber covering = m_rep->tombstones.covering(key, at_most);
  const EntryList::Node* node = m_rep->list.find(key, at_most);
  if (node) {
    const Entry entry = EntryList::entry_of(node);
    if (entry.key == key && entry.sequence >= covering) {
      if (entry.type == EntryType::tombstone) {
        return Lookup::removed;
      }
      if (entry.type == EntryType::logged_value) {
        const LoggedValue logged = LoggedValue::of(entry);
        if (!logged.pin()) {
          logged.encode_pointer(value);
          return Lookup::pointer;
        }
        value->assign(logged.bytes());
        logged.unpin();
        return Lookup::found;
      }
      value->assign(entry.value);
      return Lookup::found;
    }
  }
  return covering > 0 ? Lookup::removed : Lookup::absent;
}

bool MemTable::touches(std::string_view key, SequenceNumber after) const {
  if (last_sequence() <= after) {
    return false;
  }
  if (m_rep->tombstones.covering(key, UINT64_MAX) > after) {
    return true;
  }
  const EntryList::Node* node = m_rep->list.find(key, UINT64_MAX);  // the newest entry of the key
  const Entry entry = node ? EntryList::entry_of(node) : Entry();
  return node && entry.key == key && entry.sequence > after;
}

std::unique_ptr<EntryIterator> MemTable::new_iterator() const {
  return std::make_unique<MemTableIterator>(m_rep->list);
}

std::unique_ptr<EntryIterator> MemTable::new_flush_iterator() const {
  return std::make_unique<FlushIterator>(m_rep->list);
}

const RangeTombstones& MemTable::range_tombstones() const { return m_rep->tombstones; }

size_t MemTable::memory_bytes() const {
  return m_rep->arena.memory_bytes() + m_rep->tombstones.memory_bytes() + kept_bytes();
}

// An entry takes a node of the list and, in the tree, a cell of a node that is half full at the least. Its bytes lie in
// blocks of the arena, of which a quarter at most is left unused.
size_t MemTable::growth_most(const WriteBatch& batch, size_t kept) const {
  constexpr size_t kEntryBytes = 128;
  const size_t pieces = batch.encoded_bytes() + batch.sequence_count() * kEntryBytes;
  return pieces + pieces / 3 + 2 * Arena::kBlockBytes + m_rep->tombstones.growth_most(batch.range_count()) + kept;
}

bool MemTable::empty() const { return m_rep->empty.load(std::memory_order_acquire); }

uint64_t MemTable::entries() const { return m_rep->entries.load(std::memory_order_relaxed); }

SequenceNumber MemTable::last_sequence() const { return m_rep->last_sequence.load(std::memory_order_relaxed); }

}  // namespace vtkv
