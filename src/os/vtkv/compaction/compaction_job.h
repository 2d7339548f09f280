// SPDX-License-Identifier: LGPL-2.1-or-later
// Carries out one step of compaction: reads its inputs, writes the result and what is left of the inputs.
//
// The parts of the inputs that lie in the range are merged. A part that reaches out of it is cut: its rest, on either
// side, becomes a part that names the blocks where they lie, takes over the filter, and has its own descriptor. A part
// that overlaps no other goes into the result as a whole, or stays where it is.
//
// Nothing that exists is changed: the edit names the result, and the caller installs it. Not thread-safe. Dropped
// without that, it leaves reusable space.
#pragma once

#include <functional>
#include <vector>

#include "vtkv/compaction/compaction_iterator.h"
#include "vtkv/compaction/compaction_step.h"
#include "vtkv/compaction/run_part_writer.h"
#include "vtkv/compaction/stitch_compaction.h"

namespace vtkv {

class CompactionJob {
 public:
  struct Context {
    Env* env = nullptr;
    SpanReader reader;
    std::function<uint64_t()> next_id;  // of runs and sorted runs
    RunWriter::Settings settings;       // of the result and of the rests; ids, level and stream are the job's
    StitchPolicy policy;
    uint32_t range_reads_max = 0;  // to find out whether range tombstones can be dropped
  };

  // `sorted_runs` newest first; `snapshots` ascending; both outlive the job, as the step does.
  CompactionJob(const Context& context, const SortedRuns& sorted_runs, const CompactionStep& step,
                const std::vector<SequenceNumber>& snapshots, EntryObserver* observer);
  // Code::corruption, io_error, no_space, and what the pace says.
  Status run();
  TreeEdit take_edit() { return std::move(m_edit); }
  uint64_t written_bytes() const { return m_written_bytes; }
  uint64_t stitched_bytes() const { return m_stitched_bytes; }
  uint64_t filter_read_bytes() const { return m_filter_read_bytes; }

 private:
  struct Input {
    uint64_t sorted_run_id = 0;
    std::shared_ptr<const Run> part;
    bool is_whole = false;  // goes into the result as it is, or stays there
    bool stays = false;
  };

  void gather();
  void find_whole_parts();
  bool lies_in_range(const Run& part) const;
  Status merge_inputs();
  Status merge_range(const KeyRange& range, CompactionIterator* iterator, RunPartWriter* writer);
  Status cut(const Input& input);
  Status write_rest(const Input& input, const KeyRange& rest);
  Status renew_filter(std::shared_ptr<const Run>* part);
  RunWriter::Settings settings_of(uint32_t level, ZoneStream stream) const;
  uint64_t result_id();

  const Context& m_context;
  const SortedRuns& m_sorted_runs;
  const CompactionStep& m_step;
  const std::vector<SequenceNumber>& m_snapshots;
  EntryObserver* const m_observer;
  std::vector<Input> m_inputs;  // newest first, in key order within a sorted run
  TreeEdit m_edit;
  uint64_t m_written_bytes = 0, m_stitched_bytes = 0, m_filter_read_bytes = 0;
};

// A part of so few bytes goes together with its neighbours.
bool is_small_part(uint64_t bytes, uint64_t part_bytes);

// Does the part lie in the range, in whole or in part?
bool reaches_into(const Run& part, const KeyRange& range);

}  // namespace vtkv
