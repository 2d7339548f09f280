// SPDX-License-Identifier: LGPL-2.1-or-later
// One step of compaction: which keys of which sorted runs; and the change of the tree that it makes.
#pragma once

#include <cstdint>
#include <optional>

#include "vtkv/compaction/compaction_source.h"
#include "vtkv/table/sorted_run.h"

namespace vtkv {

// Everything that neighbouring sorted runs hold in a key range goes into one of them. The oldest takes it, or a new one
// directly behind them. So no entry passes another of its key: neighbours only, and all versions in the range at once.
struct CompactionStep {
  size_t first = 0;  // of the sorted runs, newest first
  size_t count = 0;  // 0: nothing is worth doing
  KeyRange range;
  uint32_t level = 0;  // of the result
  bool joins_oldest = false;  // false: a new sorted run takes it
  uint64_t part_bytes = 0;  // of the result, about
  bool renews_filters = false;  // of rests that have lost most of their entries
  bool merges_all = false;  // also parts that overlap no other: fewer are left
  bool is_of_turn = false;  // the turn through the last level goes on behind it
};

// Replaces parts. Stands for parts by identity, so it can be applied to any list that still has the removed ones.
struct TreeEdit {
  struct Addition {
    uint64_t sorted_run_id = 0;
    std::shared_ptr<const Run> part;
  };
  Runs removed;
  std::vector<Addition> added;
  // Directly behind the sorted run `behind`.
  struct NewSortedRun {
    uint64_t id = 0;
    uint32_t level = 0;
    uint64_t behind = 0;
  };
  std::optional<NewSortedRun> created;

  bool empty() const { return removed.empty() && added.empty(); }
  // REQUIRES: the list has everything that is named.
  void apply(SortedRuns* sorted_runs) const;
};

}  // namespace vtkv
