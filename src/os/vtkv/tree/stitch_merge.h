// Merges runs into one, reading only what has to be read (VT-tree, FAST '13, section 3.1).
//
// The inputs are walked in key order, block by block. Before a block is opened:
//   * when a range removal hides all of it, in every snapshot's eyes, it is left out unread;
//   * when no other input, and no range removal, has a say in it and in enough of its neighbours, the new run
//     refers to them where they lie: they are stitched in.
// Everything else is read, reduced and written to the fill. What "enough" is, is the stitching threshold: more
// of it means fewer bytes written, less of it runs that lie in longer pieces, for scans.
//
// Why stitching loses no version and revives none:
//   1. The key range of stitched blocks is closed and shared with nobody: the other inputs have no key in it
//      that is still to come, the last key already dealt with lies before it, and the block behind it begins
//      with another key. So no key has versions on both sides of a stitch.
//   2. No range removal of the merge is newer than any entry in it and reaches into its key range, so that
//      removals may end here as if everything they hide had been seen.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "vtkv/mem/entry_order.h"
#include "vtkv/options.h"
#include "vtkv/tree/merge_pace.h"
#include "vtkv/tree/merge_source.h"
#include "vtkv/tree/reducer.h"
#include "vtkv/tree/run_writer.h"
#include "vtkv/util/source_heap.h"

namespace vtkv {

struct StitchPolicy {
  // Contiguous bytes; of long keys it takes more of them. 0: every block that can be; kNeverStitch: everything is copied.
  uint64_t bytes_min = 64 << 10;
  // False: blocks are stitched whatever removals they hold.
  bool reduces = true;
  // When set: blocks that lie, or whose index lies, in these bytes of the zone file are copied, to empty them.
  std::function<bool(uint64_t offset, uint64_t bytes)> must_move;
  uint64_t moved_max = UINT64_MAX;  // bytes; what comes behind them stays where it lies
  // When set: of the runs, the one whose entries are written. The others only have a say in what is kept of it.
  std::optional<size_t> only;
  EntryOrder order;
};

class StitchMerge {
 public:
  // `runs` newest first; of them, only the keys in `range`. Runs, reducer and writer outlive the merge.
  StitchMerge(const std::vector<std::shared_ptr<const Run>>& runs, Reducer* reducer, const StitchPolicy& policy,
              const MergePace& pace, RunWriter* writer, const KeyRange& range = {});
  // Adds everything that is left of the runs to the writer, which is then ready to finish, or for keys behind these.
  Status run();
  StitchMerge(const StitchMerge&) = delete;
  StitchMerge& operator=(const StitchMerge&) = delete;

 private:
  struct InTurn {
    const StitchMerge* merge;
    bool operator()(size_t a, size_t b) const;
  };

  EntryPlace place_of(size_t source) const {
    return {m_sources[source]->key(), m_sources[source]->sequence(), source};
  }
  bool limit(std::string_view* key) const;  // the least key of the other sources
  uint64_t stitched_bytes_min(const MergeSource& source) const;
  Status pass_over(MergeSource* source, bool* passed);
  bool is_stitchable(const BlockRange& blocks, const MergeSource& source) const;
  Status step();
  bool is_written(size_t source) const { return !m_policy.only || *m_policy.only == source; }

  Reducer& m_reducer;
  const StitchPolicy m_policy;
  const MergePace m_pace;
  RunWriter& m_writer;
  const std::string m_begin;
  std::vector<std::unique_ptr<MergeSource>> m_sources;
  SourceHeap<InTurn> m_heap;  // of valid sources
  uint64_t m_bytes = 0;        // not told to the pace yet
};

}  // namespace vtkv
