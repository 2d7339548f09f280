// SPDX-License-Identifier: LGPL-2.1-or-later
// The segments that the collector has emptied and that an old checkpoint, snapshot or reader may still be led into:
// steps 1 to 3 of value_gc.h.
//
// Not thread-safe: the collector's worker's. Never waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "vtkv/wal/segment_pool.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class PendingFree {
 public:
  // All of the segment had been looked at by `gc_seq`. REQUIRES: it is not here.
  void add(uint64_t epoch, SequenceNumber gc_seq);
  bool contains(uint64_t epoch) const { return m_segments.contains(epoch); }
  bool empty() const { return m_segments.empty(); }
  uint64_t bytes(const LogFiles& files) const;
  // Of those that a snapshot or a reader leads to: nobody knows for how long.
  uint64_t held_bytes(SequenceNumber oldest_snapshot, const LogFiles& files) const;

  // Do those that wait for a checkpoint above `checkpoint`, the newest, take a notable part of the log? Asked for once:
  // true again only when that checkpoint has come.
  bool wants_checkpoint(SequenceNumber checkpoint, const LogFiles& files);

  // Are there any that neither a recovery from `checkpoint` nor a snapshot leads to, and that are in no reader epoch?
  bool any_unneeded(SequenceNumber checkpoint, SequenceNumber oldest_snapshot) const;
  // These wait for the end of `reader_epoch` now.
  void enter_reader_epoch(SequenceNumber checkpoint, SequenceNumber oldest_snapshot, uint64_t reader_epoch);
  bool await_readers() const;
  // Those whose reader epoch has ended.
  std::set<uint64_t> unread(const std::function<bool(uint64_t reader_epoch)>& has_ended) const;
  void remove(const std::set<uint64_t>& epochs);

 private:
  struct Segment {
    // Nothing but readers leads to it.
    bool is_unneeded(SequenceNumber checkpoint, SequenceNumber oldest_snapshot) const {
      return !in_reader_epoch && gc_seq <= checkpoint && gc_seq <= oldest_snapshot;
    }

    SequenceNumber gc_seq = 0;
    bool in_reader_epoch = false;  // waits for that epoch's end
    uint64_t reader_epoch = 0;
  };

  std::map<uint64_t, Segment> m_segments;  // by epoch
  SequenceNumber m_asked = 0;  // for a checkpoint at or above it
};

}  // namespace vtkv
