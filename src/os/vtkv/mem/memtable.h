// SPDX-License-Identifier: LGPL-2.1-or-later
// The newest part of the database, in memory: an ordered list over an arena, and the range tombstones beside it.
//
// Threads: one writer at a time (the database's write lock); any number of readers at once, without a lock but the
// short one of its range tombstones, where it has any. Invariants:
//   1. Sequence numbers arrive in ascending order.
//   2. Nothing is ever removed from a memtable; it dies as a whole when its last reader lets go.
//   3. A reader that asks at sequence s sees exactly the operations at or below s.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/logged_bytes.h"
#include "vtkv/mem/range_tombstones.h"
#include "vtkv/mem/value_pointer.h"

namespace vtkv {

// pointer: found, and what was found is an encoded ValuePointer.
enum class Lookup { absent, found, removed, pointer };

class MemTable {
 public:
  MemTable();
  ~MemTable();
  MemTable(const MemTable&) = delete;
  MemTable& operator=(const MemTable&) = delete;

  void put(SequenceNumber sequence, std::string_view key, std::string_view value);
  // A value that stays in the log: at `offset` of the batch that `address` will say the address of. A flush writes
  // a pointer to it. REQUIRES: the address is set before new_flush_iterator() is used.
  void put_logged(SequenceNumber sequence, std::string_view key, std::string_view value, const LogAddress* address,
                  uint32_t offset);
  // The same without a copy: `value` lies in `bytes`, at `offset`; keep() has to follow.
  void put_shared(SequenceNumber sequence, std::string_view key, std::string_view value, LoggedBytes* bytes,
                  uint32_t offset);
  // The same for a value that is in the log, and not kept: readers find it there. `address`: as put_logged.
  void put_unkept(SequenceNumber sequence, std::string_view key, std::string_view value, const LogAddress* address,
                  uint32_t offset);
  // Keeps them as long as the memtable lives; may be called again for the last ones. `capacity`: what they take.
  void keep(const std::shared_ptr<LoggedBytes>& bytes, size_t capacity);
  // Gives up kept bytes that are in the log up to there, the oldest first, until `budget` are left. The writer's.
  void release_kept(SequenceNumber logged, size_t budget);
  // One for every batch with such values; lives as long as the memtable.
  LogAddress* new_address();
  void remove(SequenceNumber sequence, std::string_view key);
  void remove_range(SequenceNumber sequence, std::string_view begin, std::string_view end);

  // The state of `key` at `at_most`; `removed` covers point and range tombstones.
  Lookup get(std::string_view key, SequenceNumber at_most, std::string* value) const;
  // Was anything done to `key` after that sequence?
  bool touches(std::string_view key, SequenceNumber after) const;
  std::unique_ptr<EntryIterator> new_iterator() const;
  // As a flush writes it: pointers instead of logged values. Forward from the first entry only.
  std::unique_ptr<EntryIterator> new_flush_iterator() const;
  const RangeTombstones& range_tombstones() const;

  size_t memory_bytes() const;       // with the kept bytes
  // How much memory_bytes() grows at most by what a batch puts in. `kept`: by keep(), for values of it that are shared.
  size_t growth_most(const WriteBatch& batch, size_t kept) const;
  size_t kept_bytes() const;  // of put_shared's values and what lies between them
  bool empty() const;
  uint64_t entries() const;  // puts and tombstones, every version
  SequenceNumber last_sequence() const;  // 0 when empty

 private:
  class Rep;
  std::unique_ptr<Rep> m_rep;
};

}  // namespace vtkv
