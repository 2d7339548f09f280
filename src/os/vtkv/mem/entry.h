// SPDX-License-Identifier: LGPL-2.1-or-later
// What one key holds at one sequence number, as it travels between memtable, runs and iterators.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

enum class EntryType : uint8_t {
  tombstone = 0,
  value = 1,
  value_pointer = 2,  // the value is in the log (WiscKey); this one is a ValuePointer
  logged_value = 128,  // inside a memtable only: a value that a flush turns into a pointer
};

// Ordered by key ascending, then sequence descending: the newest version of a key comes first.
struct Entry {
  std::string_view key;
  SequenceNumber sequence = 0;
  EntryType type = EntryType::value;
  std::string_view value;
};

// Iterates every version of every key of one source. Same threading and lifetime rules as Iterator.
class EntryIterator {
 public:
  virtual ~EntryIterator() = default;
  virtual bool valid() const = 0;
  virtual void seek_to_first() = 0;
  virtual void seek_to_last() = 0;
  virtual void seek(std::string_view key, SequenceNumber at_most) = 0;  // first entry >= (key, at_most)
  virtual void next() = 0;
  virtual void previous() = 0;
  virtual const Entry& entry() const = 0;
  virtual Status status() const = 0;
};

// Told of every entry that a flush or a compaction looks at, once.
class EntryObserver {
 public:
  virtual ~EntryObserver() = default;
  virtual void dropped(const Entry& entry) = 0;
  virtual void kept(const Entry&) {}
};

}  // namespace vtkv
