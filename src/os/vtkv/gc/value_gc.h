// SPDX-License-Identifier: LGPL-2.1-or-later
// Garbage collection of the value log (WiscKey, section 3.3.2): frees segments whose values are mostly dead.
//
// A GC candidate, a segment that is worth emptying, is read from its start, and of each value it is asked whether the
// newest pointer of its key still leads there. Where that is cheaper, the tree is first gone through, once for several
// candidates, for the pointers into them (value_scan.h): then it is asked for these values only and, where values are
// large, only they are read. A value that lives is relocated, by an ordinary batch, in key order, and only if at that
// moment, under the database's write lock, nothing newer has been submitted for the key. So a relocation is a put like
// any other: it has its own sequence number, recovery replays it as one, and a later put wins over it. (The naive
// version lets the log hold conditional moves and decides at replay.)
//
// The tree has every pointer into a candidate: its last record lies before the checkpoint. None is added later.
//
// When all of a candidate has been looked at, at gc_seq, no reader that starts from then on is led into it. It may be
// written to again when
//   1. the newest checkpoint lies at or above gc_seq: no recovery from it needs the old copies;
//   2. no snapshot is older than gc_seq;
//   3. every reader that started before that has ended (reader epochs);
//   4. then both manifest copies have been written without it, at or above gc_seq: whichever of them a recovery
//      starts from, it leads nobody there, and it knows by its list which segments were not touched since
//      (log_recovery.h).
// A crash at any point leaves the values at both addresses, or the candidate still listed: it is collected again.
//
// A candidate to which no entry of the runs points at all need not be read: steps 2 to 4 are enough.
//
// Which one: the greatest (1 - u) * age / (1 + u), u being the part of it that lives, about (Rosenblum and
// Ousterhout's cost-benefit). When: while the log is larger than space_amplification_target times what lives.
//
// What cannot be read keeps only the segments concerned from being emptied, and only until it can be read again
// (segment_quarantine.h). Where a scan of the tree fails, nobody knows which these are: until it succeeds, candidates
// are read whole and their values looked up.
//
// While the values of one slice are moved, the next one is read, be it of the next candidate: which is chosen then.
//
// One worker; its step checks or submits one slice and never waits.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vtkv/blob/value_account.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/gc/candidate_reader.h"
#include "vtkv/gc/gc_plan.h"
#include "vtkv/gc/segment_quarantine.h"
#include "vtkv/gc/value_scan.h"
#include "vtkv/iter/read_state.h"
#include "vtkv/options.h"
#include "vtkv/util/mutex.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

// What the collector needs of its database.
class ValueGcHost {
 public:
  virtual ~ValueGcHost() = default;
  // The state of the database now, and a sequence at or below which everything is in it.
  virtual std::shared_ptr<const ReadState> gc_read_state(SequenceNumber* sequence) = 0;
  // Relocates those values for whose keys nothing was submitted after `checked`. *last: what was put is at or below
  // it. Code::busy when that cannot be told any more: check again.
  virtual Status gc_relocate(const Relocation* first, size_t count, SequenceNumber checked, SequenceNumber* last) = 0;
  // Everything at or below it was written to the log's files. When it moves, a collector that waits is woken.
  virtual SequenceNumber gc_logged_sequence() = 0;
  // The oldest sequence that a snapshot names; UINT64_MAX without one.
  virtual SequenceNumber gc_oldest_snapshot() = 0;
  // Ends the reader epoch: readers that start from now on belong to the next. Returns its number.
  virtual uint64_t gc_start_reader_epoch() = 0;
  // Have the last reader of that reader epoch, and those of the ones before, gone?
  virtual bool gc_reader_epoch_has_ended(uint64_t reader_epoch) = 0;
  virtual void gc_request_flush() = 0;
  // Neither manifest copy lists a segment any more that was listed.
  virtual void gc_released() = 0;
  virtual void gc_wake() = 0;
  virtual void gc_finished() = 0;  // a request was served
  // What cannot be done at present, or ok; how long to wait before segments are freed again.
  virtual std::chrono::microseconds gc_outcome(const Status& status) = 0;
  virtual uint64_t gc_now_us() = 0;
};

class ValueGc {
 public:
  ValueGc(const Options& options, Tree* tree, SegmentPool* pool, const ValueReader* reader, ValueFetcher* fetcher,
          ValueGcHost* host);

  NextStep step(IoQueue& io);
  // Instead of it, when nothing is collected any more: what was being read has ended.
  void reap(IoQueue& io) { m_reader.reap(io); }
  // For closing: a step under way ends soon. Thread-safe.
  void stop() { m_stop.store(true); }
  // Asks for something; returns the number that served() will have reached when it was done.
  //   settle  frees what may be freed by now
  //   round   empties the best candidate
  //   full    empties every segment that is worth it
  enum class Request { settle, round, full };
  uint64_t request(Request what);
  uint64_t served() const { return m_served.load(); }
  // Of the last request that failed; ok otherwise.
  Status error() const;

  // How far the log is beyond its target while something can be done about it: 1.2 is a fifth more. At most 1
  // when all is well.
  double pressure() const { return m_pressure.load(std::memory_order_relaxed); }
  uint64_t moved_bytes() const { return m_moved_bytes.load(std::memory_order_relaxed); }
  uint64_t lookups() const { return m_lookups.load(std::memory_order_relaxed); }
  uint64_t freed_segments() const { return m_freed_segments.load(std::memory_order_relaxed); }
  // For gc_logged_sequence() to move on.
  bool waits_for_log() const { return m_waits_for_log.load(); }

 private:
  using Way = GcPlan::Way;
  enum class Phase { idle, reading, scanning, fetching, moving };
  struct PendingFree {
    uint64_t epoch = 0;
    SequenceNumber gc_seq = 0;     // when all of it had been looked at
    bool in_reader_epoch = false;  // 1 and 2 hold; waiting for that epoch's end
    uint64_t reader_epoch = 0;
  };
  // Relocated, and perhaps not in the log's files yet.
  struct Relocating {
    SequenceNumber last = 0;
    size_t bytes = 0;
  };

  void take_request();
  void end_request();
  // Choosing, and the quarantine: in gc_candidates.cc.
  // What may be emptied now, best first.
  std::vector<SegmentValues> choose();
  GcPlan plan(const std::vector<SegmentValues>& choice) const;
  // The log's files as a multiple of what they may take.
  double fullness(const std::vector<SegmentValues>& segments) const;
  bool is_pending_free(uint64_t epoch) const;
  // The account of the log's values, and the epoch of the segment that the newest checkpoint lies in, or of one before.
  std::vector<SegmentValues> account(uint64_t* sealed_below) const;
  bool mark_unreferenced();
  NextStep idle_step();
  NextStep reading_step(IoQueue& io);
  NextStep moving_step();
  NextStep scanning_step();
  NextStep fetching_step();
  void sort_addresses();
  bool start_next();  // false: nothing is worth it
  bool try_or_start();  // likewise
  bool try_again(std::optional<uint64_t> epoch);  // which is in quarantine; false: none
  void scan_again();
  void start(const std::vector<SegmentValues>& choice);
  void start_reading(const SegmentValues& values);
  const SegmentValues& candidate() const { return m_candidates.front(); }
  CandidateReader::Slice slice_of(const SegmentValues& values, uint64_t offset) const;
  void read_ahead(IoQueue& io);
  Status parse_slice(uint64_t bytes);
  Status check_slice();
  Status is_live(const ReadState& state, AscendingLookups* lookups, const Relocation& value, bool* live) const;
  bool may_relocate();
  void finish_candidates();
  void stop_with(const Status& status);
  void give_up(uint64_t epoch, const Status& status);
  void release_from_quarantine(uint64_t epoch);
  std::chrono::microseconds tell();  // the host, what cannot be done
  std::chrono::microseconds note_freeing(const Status& status);
  Status free_pending(bool* did);
  void ask_for_checkpoint(SequenceNumber checkpoint);

  const Options& m_options;
  Tree* const m_tree;
  SegmentPool* const m_pool;
  ValueGcHost* const m_host;

  std::atomic<bool> m_stop{false};
  std::atomic<uint64_t> m_requested{0};
  std::atomic<uint64_t> m_served{0};
  std::atomic<Request> m_request{Request::settle};
  std::atomic<bool> m_waits_for_log{false};
  std::atomic<double> m_pressure{0};
  std::atomic<uint64_t> m_lookups{0};
  std::atomic<uint64_t> m_moved_bytes{0};
  std::atomic<uint64_t> m_freed_segments{0};
  mutable Mutex m_error_lock;
  Status m_error GUARDED_BY(m_error_lock);

  // The worker's own.
  Phase m_phase = Phase::idle;
  Request m_serving_what = Request::settle;
  uint64_t m_serving = 0;  // the request that is under way; 0: none
  uint64_t m_full_below = 0;  // a full round takes segments with a lower epoch
  uint64_t m_failures_before = 0;  // what has failed since is not tried again in it
  bool m_candidates_turn_over = false;  // of what is due again, one may be tried
  std::vector<SegmentValues> m_candidates;
  Way m_way = Way::whole;  // theirs; one that is read is alone
  ValueScan m_scan;
  std::deque<SegmentValues> m_chosen;  // to be read next
  // Of those among them that a scan has been made for, by epoch: the offsets of what the tree points to, ascending.
  std::map<uint64_t, std::vector<uint64_t>> m_addresses;
  bool m_fetched = false;  // m_values have been read
  CandidateReader m_reader;
  LogSegment* m_segment = nullptr;
  uint64_t m_offset = 0;  // of what comes next in the candidate
  AlignedBuffer m_bytes;  // the slice
  std::vector<Relocation> m_values;  // of the slice, by key
  size_t m_next_value = 0;
  std::deque<Relocating> m_relocating;
  size_t m_relocating_bytes = 0;
  SequenceNumber m_flushed = 0;  // everything in the candidates is at or below it, and in the tree
  SequenceNumber m_checked = 0;  // the values from m_next_value on were alive at this one; 0: not asked yet
  std::vector<PendingFree> m_pending_free;
  Status m_freeing;  // what became of the last attempt
  SequenceNumber m_asked = 0;  // for a checkpoint at or above it
  static constexpr uint64_t kScan = 0;  // of the tree, in quarantine: no segment's epoch
  SegmentQuarantine m_quarantine;
  std::string m_scan_failed_at;  // behind this key
};

}  // namespace vtkv
