// SPDX-License-Identifier: LGPL-2.1-or-later
// Compacts runs into one, reading only what has to be read (VT-tree, FAST '13, section 3.1).
//
// The inputs are walked in key order, block by block. Before a block is opened:
//   * when a range tombstone hides all of it, in every snapshot's eyes, it is left out unread;
//   * when no other input, and no range tombstone, has a say in it and in enough of its neighbours, the new run
//     refers to them where they lie: they are stitched in.
// Everything else is read, what no reader needs is dropped, and the rest is written to the fill. What "enough" is, is
// the stitching threshold: more of it means fewer bytes written, less of it runs that lie in longer fragments, for
// scans.
//
// Why stitching loses no version and revives none:
//   1. The key range of stitched blocks is closed and shared with nobody: the other inputs have no key in it
//      that is still to come, the last key already dealt with lies before it, and the block behind it begins
//      with another key. So no key has versions on both sides of a stitch.
//   2. No range tombstone of the compaction is newer than any entry in it and reaches into its key range, so that
//      tombstones may end here as if everything they hide had been seen.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "vtkv/compaction/compaction_iterator.h"
#include "vtkv/compaction/compaction_source.h"
#include "vtkv/mem/entry_order.h"
#include "vtkv/options.h"
#include "vtkv/table/entry_sink.h"
#include "vtkv/table/pace.h"
#include "vtkv/util/source_heap.h"

namespace vtkv {

struct StitchPolicy {
  // Contiguous bytes; of long keys it takes more of them. 0: every block that can be; kNeverStitch: everything is
  // copied.
  uint64_t bytes_min = 64 << 10;
  // False: blocks are stitched whatever tombstones they hold.
  bool drops_tombstones = true;
  // When set: blocks that lie, or whose index lies, in these bytes of the zone file are copied, to empty them.
  std::function<bool(uint64_t offset, uint64_t bytes)> must_move;
  uint64_t moved_max = UINT64_MAX;  // bytes; what comes behind them stays where it lies
};

class StitchCompaction {
 public:
  // `runs` newest first; of them, only the keys in `range`. Runs, iterator and sink outlive the compaction.
  StitchCompaction(const std::vector<std::shared_ptr<const Run>>& runs, CompactionIterator* iterator,
                   const StitchPolicy& policy, const CompactionPace& pace, EntrySink* sink, const KeyRange& range = {});
  // Adds everything that is left of the runs to the sink, which is then ready to finish, or for keys behind these.
  Status run();
  StitchCompaction(const StitchCompaction&) = delete;
  StitchCompaction& operator=(const StitchCompaction&) = delete;

 private:
  struct InTurn {
    const StitchCompaction* compaction;
    bool operator()(size_t a, size_t b) const;
  };

  EntryPosition position_of(size_t source) const {
    return {m_sources[source]->key(), m_sources[source]->sequence(), source};
  }
  bool limit(std::string_view* key) const;  // the least key of the other sources
  uint64_t stitched_bytes_min(const CompactionSource& source) const;
  Status pass_over(CompactionSource* source, bool* passed);
  bool is_stitchable(const BlockRange& blocks, const CompactionSource& source) const;
  Status step();

  CompactionIterator& m_iterator;
  const StitchPolicy m_policy;
  const CompactionPace m_pace;
  EntrySink& m_sink;
  const std::string m_begin;
  std::vector<std::unique_ptr<CompactionSource>> m_sources;
  SourceHeap<InTurn> m_heap;  // of valid sources
  uint64_t m_bytes = 0;        // not told to the pace yet
};

}  // namespace vtkv
