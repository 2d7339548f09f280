#include "vtkv/mem/memtable.h"

#include <cstring>
#include <new>

#include "vtkv/mem/skiplist.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// What the list holds for an entry of type logged_value; the value's bytes lie elsewhere in the arena, so that
// nodes stay small and searches touch little memory.
struct LoggedValue {
  const LogPlace* place = nullptr;
  const char* data = nullptr;
  uint32_t length = 0;
  uint32_t offset = 0;  // in the encoded batch

  static LoggedValue of(const Entry& entry) {
    LoggedValue value;
    std::memcpy(&value, entry.value.data(), sizeof(value));
    return value;
  }
  std::string_view bytes() const { return {data, length}; }
};

}  // namespace

class MemTable::Rep {
 public:
  Arena arena;
  SkipList list{&arena};
  RangeRemovals removals;
  std::atomic<bool> empty{true};
  std::atomic<uint64_t> entries{0};
  std::atomic<SequenceNumber> last_sequence{0};

  void insert(const Entry& entry) {
    list.insert(entry);
    entries.fetch_add(1, std::memory_order_relaxed);
    advance(entry.sequence);
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
  explicit MemTableIterator(const SkipList& list) : m_list(list) {}

  bool valid() const override { return m_node != nullptr; }
  void seek_to_first() override { move(m_list.first()); }
  void seek_to_last() override { move(m_list.last()); }
  void seek(std::string_view key, SequenceNumber at_most) override { move(m_list.find(key, at_most)); }
  void next() override { move(SkipList::next(m_node)); }
  void previous() override { move(m_list.previous(m_node)); }
  const Entry& entry() const override { return m_entry; }
  Status status() const override { return {}; }

 private:
  void move(const SkipList::Node* node) {
    m_node = node;
    if (!node) {
      return;
    }
    m_entry = SkipList::entry_of(node);
    if (m_entry.type == EntryType::logged_value) {
      m_entry.type = EntryType::value;
      m_entry.value = LoggedValue::of(m_entry).bytes();
    }
  }

  const SkipList& m_list;
  const SkipList::Node* m_node = nullptr;
  Entry m_entry;
};

class FlushIterator final : public EntryIterator {
 public:
  explicit FlushIterator(const SkipList& list) : m_list(list) {}

  bool valid() const override { return m_node != nullptr; }
  void seek_to_first() override { move(m_list.first()); }
  void next() override { move(SkipList::next(m_node)); }
  const Entry& entry() const override { return m_entry; }
  Status status() const override { return {}; }
  void seek_to_last() override { VTKV_ASSERT(!"forward only"); }
  void seek(std::string_view, SequenceNumber) override { VTKV_ASSERT(!"forward only"); }
  void previous() override { VTKV_ASSERT(!"forward only"); }

 private:
  void move(const SkipList::Node* node) {
    m_node = node;
    if (!node) {
      return;
    }
    m_entry = SkipList::entry_of(node);
    if (m_entry.type == EntryType::logged_value) {
      const LoggedValue value = LoggedValue::of(m_entry);
      VTKV_ASSERT(value.place->epoch > 0);
      m_pointer.clear();
      ValuePointer{value.place->segment_id, value.place->epoch, value.place->offset + value.offset, value.length,
                   value_checksum(m_entry.key, value.bytes())}
          .encode(&m_pointer);
      m_entry.type = EntryType::value_pointer;
      m_entry.value = m_pointer;
    }
  }

  const SkipList& m_list;
  const SkipList::Node* m_node = nullptr;
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
                          const LogPlace* place, uint32_t offset) {
  char* copy = m_rep->arena.allocate(value.size());
  std::memcpy(copy, value.data(), value.size());
  const LoggedValue logged{place, copy, static_cast<uint32_t>(value.size()), offset};
  m_rep->insert({key, sequence, EntryType::logged_value, {reinterpret_cast<const char*>(&logged), sizeof(logged)}});
}

LogPlace* MemTable::new_place() { return new (m_rep->arena.allocate(sizeof(LogPlace))) LogPlace; }

void MemTable::remove(SequenceNumber sequence, std::string_view key) {
  m_rep->insert({key, sequence, EntryType::removal, {}});
}

void MemTable::remove_range(SequenceNumber sequence, std::string_view begin, std::string_view end) {
  m_rep->removals.add(sequence, begin, end);
  m_rep->advance(sequence);
}

Lookup MemTable::get(std::string_view key, SequenceNumber at_most, std::string* value) const {
  const SequenceNumber covering = m_rep->removals.covering(key, at_most);
  const SkipList::Node* node = m_rep->list.find(key, at_most);
  if (node) {
    const Entry entry = SkipList::entry_of(node);
    if (entry.key == key && entry.sequence >= covering) {
      if (entry.type == EntryType::removal) {
        return Lookup::removed;
      }
      if (entry.type == EntryType::logged_value) {
        value->assign(LoggedValue::of(entry).bytes());
        return Lookup::found;
      }
      value->assign(entry.value);
      return entry.type == EntryType::value_pointer ? Lookup::pointer : Lookup::found;
    }
  }
  return covering > 0 ? Lookup::removed : Lookup::absent;
}

std::unique_ptr<EntryIterator> MemTable::new_iterator() const {
  return std::make_unique<MemTableIterator>(m_rep->list);
}

std::unique_ptr<EntryIterator> MemTable::new_flush_iterator() const {
  return std::make_unique<FlushIterator>(m_rep->list);
}

const RangeRemovals& MemTable::range_removals() const { return m_rep->removals; }

size_t MemTable::memory_bytes() const { return m_rep->arena.memory_bytes() + m_rep->removals.memory_bytes(); }

bool MemTable::empty() const { return m_rep->empty.load(std::memory_order_acquire); }

uint64_t MemTable::entries() const { return m_rep->entries.load(std::memory_order_relaxed); }

SequenceNumber MemTable::last_sequence() const { return m_rep->last_sequence.load(std::memory_order_relaxed); }

}  // namespace vtkv
