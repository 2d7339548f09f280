// SPDX-License-Identifier: LGPL-2.1-or-later
// Sorted runs: what a lookup asks one after the other. Each consists of parts whose key ranges do not overlap.
//
// A part is an object of class Run: it has its own descriptor, filter and range tombstones. So a compaction can replace
// a few parts of a large sorted run and leave the others as they are.
//
// Invariants of a list of sorted runs, newest first:
//   1. Of a key, every version in a sorted run is newer than every version in the sorted runs behind it.
//   2. The parts of a sorted run are in key order: each ends ([begin_key, end_key)) at or before the next one begins.
//
// Values: copies share the parts, which are immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "vtkv/table/run.h"

namespace vtkv {

using Runs = std::vector<std::shared_ptr<const Run>>;

struct SortedRun {
  uint64_t id = 0;  // stays the same while parts come and go
  uint32_t level = 0;
  Runs parts;

  // The part that may hold the key; null: none does. Cost: O(log parts) comparisons of keys.
  const std::shared_ptr<const Run>* find(std::string_view key) const;
  // The first part that ends behind `key`.
  size_t first_behind(std::string_view key) const;
  uint64_t entry_bytes() const;
};

using SortedRuns = std::vector<SortedRun>;

// Of the last level: its sorted run is the oldest, and there is no other.
inline constexpr uint32_t kLastLevel = 255;

Runs parts_of(const SortedRuns& sorted_runs);

// Puts parts, newest first, together by the sorted runs that their locations name. Code::corruption when they
// contradict invariant 2.
Status make_sorted_runs(const Runs& parts, const std::vector<RunLocation>& locations, SortedRuns* sorted_runs);

}  // namespace vtkv
