// SPDX-License-Identifier: LGPL-2.1-or-later
// Which segments the collector of the value log empties next, and whether it is time to: the log's files against what
// lives in them.
//
// pressure() is for any thread; the rest is the collector's worker's. Takes no lock of its own, reads no file.
#pragma once

#include <atomic>
#include <vector>

#include "vtkv/blob/value_account.h"
#include "vtkv/gc/gc_gain.h"
#include "vtkv/gc/pending_free.h"
#include "vtkv/gc/segment_quarantine.h"
#include "vtkv/options.h"
#include "vtkv/tree/tree.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

// A segment of which everything is in the tree.
struct SealedSegment {
  SegmentValues values;
  uint64_t bytes = 0;
};
// Those of which at most the part `worthwhile` lives, the best first: by (1 - u) * age / (1 + u), u being that part
// (Rosenblum and Ousterhout's cost-benefit), and the age in epochs before `newest`.
std::vector<SealedSegment> rank_candidates(const std::vector<SealedSegment>& segments, uint64_t newest,
                                           double worthwhile);

class CandidateChoice {
 public:
  CandidateChoice(const Options& options, const Tree* tree, const PendingFree* pending_free,
                  const SegmentQuarantine* quarantine, GcGain* gain)
      : m_options(options), m_tree(tree), m_pending_free(pending_free), m_quarantine(quarantine), m_gain(gain) {}

  // What is wanted: what the log's size makes worth it; one segment, where hardly anything is worth it; or all of those
  // with an epoch below `full_below`.
  enum class Extent { due, round, full };
  // What may be emptied now, best first. `files`: the pool's, of now. Nothing is due while what was emptied is kept by
  // a snapshot or a reader and large beside what lives: the log would grow by what is emptied.
  std::vector<SealedSegment> choose(Extent extent, uint64_t full_below, const LogFiles& files,
                                    SequenceNumber oldest_snapshot);
  // The account of the log's values, and the newest checkpoint's position, or that of one before.
  std::vector<SegmentValues> account(LogPosition* checkpoint) const;

  // How far the log is beyond its target while something can be done about it: 1.2 is a fifth more. At most 1
  // when all is well.
  double pressure() const { return m_pressure.load(std::memory_order_relaxed); }

 private:
  // The log's files as a multiple of what they may take.
  double fullness(const std::vector<SegmentValues>& segments, const LogFiles& files) const;
  uint64_t live_bytes(const std::vector<SegmentValues>& segments, const LogFiles& files) const;

  const Options& m_options;
  const Tree* const m_tree;
  const PendingFree* const m_pending_free;
  const SegmentQuarantine* const m_quarantine;
  GcGain* const m_gain;
  std::atomic<double> m_pressure{0};
};

}  // namespace vtkv
