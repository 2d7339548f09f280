// The newest part of the database, in memory: a skiplist over an arena, and the range removals beside it.
//
// Threads: one writer at a time (the database's write lock); any number of readers at once, without a lock
// on the point path. Invariants:
//   1. Sequence numbers arrive in ascending order.
//   2. Nothing is ever removed from a memtable; it dies as a whole when its last reader lets go.
//   3. A reader that asks at sequence s sees exactly the operations at or below s.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/range_removals.h"

namespace vtkv {

enum class Lookup { absent, found, removed };

class MemTable {
 public:
  MemTable();
  ~MemTable();
  MemTable(const MemTable&) = delete;
  MemTable& operator=(const MemTable&) = delete;

  void put(SequenceNumber sequence, std::string_view key, std::string_view value);
  void remove(SequenceNumber sequence, std::string_view key);
  void remove_range(SequenceNumber sequence, std::string_view begin, std::string_view end);

  // The state of `key` at `at_most`; `removed` covers point and range removals.
  Lookup get(std::string_view key, SequenceNumber at_most, std::string* value) const;
  std::unique_ptr<EntryIterator> new_iterator() const;
  const RangeRemovals& range_removals() const;

  size_t memory_bytes() const;
  bool empty() const;
  uint64_t entries() const;  // puts and removals, every version
  SequenceNumber last_sequence() const;  // 0 when empty

 private:
  class Rep;
  std::unique_ptr<Rep> m_rep;
};

}  // namespace vtkv
