// SPDX-License-Identifier: LGPL-2.1-or-later
// Empties zones that are little used, or used in many small fragments (VT-tree, FAST '13, section 3.4).
//
// Stitching lets runs share zones with what they replaced: a zone stays in use while any run holds a fragment
// of it. A pass chooses zones by what emptying them gains for each byte that has to be moved, the best first:
//
//   gain = unused bytes + (fragments - 1) * fragment_bytes()        cost = live bytes
//
// A fragment counts as much as the bytes that a device reads in the time of one seek, 64 KiB in a zone of 8 MiB:
// few entries per fragment make a scan seek, however full the zone is. What is moved goes, in key order, to the first
// free space of the compactions' stream. The new address is durable and in the manifest before the old one can become
// free: moving is a compaction of one run (Tree::move_out_of), and readers and the older checkpoint keep their zones.
//
// Zones that are mostly empty go first, a few at a time, so that they come back soon. Fragments that lie in all the
// others are neighbours of one another by key: these zones are emptied together, in key order, or the fragments would
// remain fragments. Until the end of the pass that takes room for what they hold.
//
// A zone that others write to meanwhile, as they may once it is empty, is left alone from then on: a pass ends however
// much is written.
//
// With each step the descriptor of a run is written anew, and it may be large. So a step moves several times as much,
// if there is so much to move; and a pass that gains too little for the descriptors of all runs does not begin.
//
// One step moves bytes_per_step and says how long to wait, so that the pass keeps to its rate: of all that is written.
//
// Threads: one at a time calls start(), step() and stop(); report() and moved_in_all() may be called by any.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "vtkv/tree/tree.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class Defragmenter {
 public:
  explicit Defragmenter(Tree* tree) : m_tree(*tree) {}

  static uint64_t fragment_bytes(uint64_t zone_bytes) { return std::min<uint64_t>(64 << 10, zone_bytes / 128); }
  // Zones worth emptying, the best first.
  static std::vector<uint64_t> choose(const std::vector<ZoneUsage>& zones, uint64_t zone_bytes, double gain_min);

  // Begins a pass; a pass under way is given up. One that only measures is over at once.
  void start(const DefragmentOptions& options);
  bool running() const;
  // REQUIRES: running(). *wait before the next step. An error ends the pass and changes nothing else.
  Status step(const SnapshotSource& snapshots, std::chrono::microseconds* wait);
  // Ends the pass, if there is one, between two steps.
  void stop();
  DefragmentReport report() const;  // its error stays ok: step() returned it
  uint64_t moved_in_all() const;  // bytes, by all passes

 private:
  void next_batch();
  void drop_emptied();     // out of the batch
  void drop_written_to();  // of those that wait
  bool is_worthwhile() const;  // to begin with what waits

  Tree& m_tree;
  // Of the thread that calls start(), step() and stop().
  DefragmentOptions m_options;
  std::vector<ZoneUsage> m_usage;  // when the pass began
  uint64_t m_descriptor_bytes = 0;  // likewise
  std::vector<uint64_t> m_waiting;  // zones, the next one last
  std::set<uint64_t> m_batch;

  mutable Mutex m_lock;
  DefragmentReport m_report GUARDED_BY(m_lock);
  uint64_t m_moved_in_all GUARDED_BY(m_lock) = 0;
};

}  // namespace vtkv
