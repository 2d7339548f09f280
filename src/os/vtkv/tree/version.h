// SPDX-License-Identifier: LGPL-2.1-or-later
// What readers see of the tree.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/memtable.h"
#include "vtkv/mem/range_tombstones.h"
#include "vtkv/status.h"

namespace vtkv {

// Lookups of many keys in ascending order: neighbours share the search, the reads and the blocks. Not thread-safe.
class AscendingLookups {
 public:
  virtual ~AscendingLookups() = default;
  // As Version::get for the newest version. REQUIRES: `key` is not below the one before.
  virtual Status get(std::string_view key, Lookup* result, std::string* value) = 0;
};

// An immutable set of runs. Readers hold it by shared_ptr; that pins its runs and zones.
class Version {
 public:
  virtual ~Version() = default;
  // Newest version of `key` at or below `at_most`. Errors: corruption, io_error.
  virtual Status get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const = 0;
  virtual std::unique_ptr<AscendingLookups> ascending_lookups() const = 0;  // lives no longer than the version
  // One iterator and one set of range tombstones (null: none in the bounds) per run, newest run first,
  // restricted to runs that overlap [lower, upper); an empty upper is no limit. Iterators are not clipped
  // to the bounds; they live no longer than the version.
  virtual void new_iterators(std::string_view lower, std::string_view upper,
                             std::vector<std::unique_ptr<EntryIterator>>* iterators,
                             std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const = 0;
};

}  // namespace vtkv
