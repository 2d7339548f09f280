// SPDX-License-Identifier: LGPL-2.1-or-later
// Chooses the next step of compaction (compaction/compaction_step.h).
//
// The oldest sorted run is the last level: it holds nearly all of the tree. All others are *upper* runs.
//
// Space. Upper entries hide entries of the last level, so their weight is about the garbage in the tree. When it
// exceeds kUpperShare of the last level, the next part of that level in turn is merged with everything above it: the
// oldest garbage goes first, all of a range at once, and the tree stays near 1 + kUpperShare times what lives in it. A
// part with little above it waits for the next turn. Runs share zones in key order, so a turn empties their zones one
// after the other.
//
// Runs. A lookup asks each sorted run. Options::runs_per_level runs of an upper level are merged into one run of the
// next level, in key order, one range after the other.
//
// The more urgent of the two goes first. Either way, a step reads about step_bytes() and writes no more: it asks for
// little room, and nobody waits long for its end. (Policies that merge whole runs, or level by level, take 2 to 6 times
// as much space or write 1.2 to 1.6 times as much; doc/vtkv.md, "Which runs are compacted".)
//
// Damage. A step that failed because something cannot be read is not chosen for as long as it waits; the turn goes on
// behind its range.
//
// Not thread-safe: the tree holds its compaction lock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vtkv/compaction/compaction_step.h"

namespace vtkv {

struct CompactionShape {
  uint32_t runs_per_level = 4;
  uint32_t growth_factor = 4;
  uint64_t memtable_bytes = 32u << 20;
};

// What the sorted runs hold, as far as space is concerned.
struct TreeWeight {
  uint64_t last_bytes = 0;
  uint64_t upper_weight = 0;  // bytes of garbage that the upper runs stand for
  uint64_t limit = 0;  // of upper_weight: beyond it, the last level is compacted
  uint32_t runs_most = 0;  // in one upper level
};

// What a step reads, about, and writes at most.
uint64_t compaction_step_bytes(const SortedRuns& runs, const CompactionShape& shape);
// Without the range tombstones' weight. Any thread may ask.
TreeWeight weigh(const SortedRuns& runs, const CompactionShape& shape);
// 0: nothing is behind; 1: writers should wait for compaction. In proportion in between.
double compaction_pressure(const SortedRuns& runs, const CompactionShape& shape);
// Bytes that the tree has beyond its shape.
uint64_t compaction_debt(const SortedRuns& runs, const CompactionShape& shape);

class CompactionPolicy {
 public:
  explicit CompactionPolicy(const CompactionShape& shape) : m_shape(shape) {}

  CompactionStep choose(const SortedRuns& runs);
  // Where the manifest has little room to list runs, whatever the shape.
  CompactionStep choose_for_room(const SortedRuns& runs);
  // For a compaction of everything: the next range from *cursor on that holds more than the last level alone, or
  // garbage. *cursor moves behind it.
  CompactionStep choose_all(const SortedRuns& runs, std::optional<std::string>* cursor) const;
  // All runs from `first` on, in this range, into the last level.
  CompactionStep into_last_level(const SortedRuns& runs, size_t first, KeyRange range) const;

  // What became of a step; `runs` as they were when it was chosen, `created` the sorted run that it made.
  void succeeded(const SortedRuns& runs, const CompactionStep& step, std::optional<uint64_t> created);
  void failed(const SortedRuns& runs, const CompactionStep& step);
  void retry_failed();
  void forget_missing(const SortedRuns& runs);  // failures of sorted runs that are gone
  bool any_failed() const { return !m_failed.empty(); }
  bool any_waits() const;
  // Has a step of this range and any of these runs failed, and waits?
  bool is_blocked(const SortedRuns& runs, const CompactionStep& step) const;

 private:
  struct Failed {
    KeyRange range;
    std::set<uint64_t> sorted_runs;
    bool waits = true;
  };
  // Runs that are being merged into one of the next level.
  struct Merge {
    std::set<uint64_t> inputs;
    std::optional<uint64_t> result;  // once the first step has made it
    uint32_t level = 0;  // of the result
    std::string cursor;  // everything in front of it is merged
  };

  CompactionStep choose_retry(const SortedRuns& runs) const;
  CompactionStep choose_last(const SortedRuns& runs) const;
  CompactionStep choose_in_turn(const SortedRuns& runs) const;
  CompactionStep choose_merge(const SortedRuns& runs);
  CompactionStep choose_small_parts(const SortedRuns& runs) const;
  CompactionStep next_of_merge(const SortedRuns& runs);
  bool begin_merge(const SortedRuns& runs);
  bool begin_merge_for_room(const SortedRuns& runs);
  CompactionStep last_step(const SortedRuns& runs, std::string begin, size_t next, uint64_t bytes_max) const;
  CompactionStep part_step(const SortedRuns& runs, size_t part, uint64_t bytes_max) const;
  uint64_t range_weight(const SortedRuns& runs);
  std::vector<uint64_t> weights_above(const SortedRuns& runs) const;
  bool is_barrier(uint64_t sorted_run_id) const;
  uint32_t level_of_merged(uint64_t bytes, uint32_t level) const;

  const CompactionShape m_shape;
  std::string m_cursor;  // of the turn through the last level
  std::optional<Merge> m_merge;
  std::vector<Failed> m_failed;
  std::map<uint64_t, uint64_t> m_range_weights;  // of range tombstones, by run id
};

}  // namespace vtkv
