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
// Which one, and when: candidate_choice.h. While the log is larger than space_amplification_target times what lives,
// the one that gives back the most for what it costs. It stops where that gains nothing (gc_gain.h), or a snapshot or a
// reader keeps what was emptied.
//
// What cannot be read keeps only the segments concerned from being emptied, and only until it can be read again
// (segment_quarantine.h). Where a scan of the tree fails, nobody knows which these are: until it succeeds, candidates
// are read whole and their values looked up.
//
// While the values of one slice are moved, the next one is read, be it of the next candidate: which is chosen then.
//
// The state of it is in parts: GcRequests, CandidateChoice, GcGain, MemtableGarbage, PendingFree, SegmentQuarantine,
// CandidateReader, ValueScan.
//
// One worker; its step checks or submits one slice and never waits. What else is public is thread-safe, but for reap().
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vtkv/blob/relocator.h"
#include "vtkv/blob/value_account.h"
#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/workers.h"
#include "vtkv/gc/candidate_choice.h"
#include "vtkv/gc/candidate_reader.h"
#include "vtkv/gc/gc_gain.h"
#include "vtkv/gc/gc_plan.h"
#include "vtkv/gc/gc_requests.h"
#include "vtkv/gc/memtable_garbage.h"
#include "vtkv/gc/pending_free.h"
#include "vtkv/gc/segment_quarantine.h"
#include "vtkv/gc/unwritten_relocations.h"
#include "vtkv/gc/value_scan.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/options.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class ValueGc {
 public:
  // The parts of the database that it works with. They outlive it, but for the fetcher: that ends after the worker.
  struct Database {
    Env* env;
    Tree* tree;
    SegmentPool* pool;
    const ValueReader* reader;
    ValueFetcher* fetcher;
    ReadStates* states;
    CommitPipeline* pipeline;
    Relocator* relocator;
    BackgroundErrors* errors;
    Workers* workers;
    Waiters* waiters;
    std::function<void()> request_flush;
    std::function<void()> segments_freed;  // neither manifest copy lists a segment any more that was listed
  };
  ValueGc(const Options& options, Database database);

  NextStep step(IoQueue& io);
  // Instead of it, when nothing is collected any more: what was being read has ended.
  void reap(IoQueue& io) { m_reader.reap(io); }
  // For closing: a step under way ends soon. Thread-safe.
  void stop() { m_stop.store(true); }
  // Asks for something; returns the number that served() will have reached when it was done. Wakes nobody.
  uint64_t request(GcRequest what) { return m_requests.request(what); }
  uint64_t served() const { return m_requests.served(); }
  // Of the last request that failed; ok otherwise.
  Status error() const { return m_requests.error(); }

  double pressure() const { return m_choice.pressure(); }  // see CandidateChoice
  uint64_t moved_bytes() const { return m_moved_bytes.load(std::memory_order_relaxed); }
  uint64_t lookups() const { return m_lookups.load(std::memory_order_relaxed); }
  uint64_t freed_segments() const { return m_freed_segments.load(std::memory_order_relaxed); }
  // For CommitPipeline::logged_sequence() to move on: whoever moves it wakes the collector.
  bool waits_for_log() const { return m_waits_for_log.load() || m_awaits_writes.load(); }

 private:
  using Way = GcPlan::Way;
  enum class Phase { idle, reading, scanning, fetching, moving };
  // What was found and not relocated yet.
  struct Slice {
    void begin() {
      values.clear();
      next = 0;
      checked = 0;
    }

    std::vector<Relocation> values;  // by key
    size_t next = 0;
    bool fetched = false;  // they have been read
    SequenceNumber checked = 0;  // those from `next` on were alive at this one; 0: not asked yet
  };

  void take_request();
  void end_request();
  // Choosing, and the quarantine: in gc_candidates.cc.
  std::vector<SealedSegment> choose(const LogFiles& files);
  void judge_gain(const LogFiles& files);
  GcPlan plan(const std::vector<SealedSegment>& choice, const LogFiles& files) const;
  bool mark_unreferenced();
  NextStep idle_step();
  std::optional<std::chrono::microseconds> look_at_memtable();
  NextStep reading_step(IoQueue& io);
  NextStep moving_step();
  NextStep scanning_step();
  NextStep fetching_step();
  void sort_addresses();
  bool start_next();  // false: nothing is worth it
  bool try_or_start();  // likewise
  bool try_again(std::optional<uint64_t> epoch);  // which is in quarantine; false: none
  void scan_again();
  void start(GcPlan planned);
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
  std::chrono::microseconds tell();  // what cannot be done; how long to wait before segments are freed again
  std::chrono::microseconds note_freeing(const Status& status);
  Status free_pending(bool* did);

  const Options& m_options;
  const Database m_db;

  std::atomic<bool> m_stop{false};
  GcRequests m_requests;
  std::atomic<bool> m_waits_for_log{false};
  std::atomic<bool> m_awaits_writes{false};  // it is at rest
  std::atomic<uint64_t> m_lookups{0};
  std::atomic<uint64_t> m_moved_bytes{0};
  std::atomic<uint64_t> m_freed_segments{0};

  // The worker's own.
  Phase m_phase = Phase::idle;
  uint64_t m_full_below = 0;  // a full round takes segments with a lower epoch
  uint64_t m_failures_before = 0;  // what has failed since is not tried again in it
  bool m_candidates_turn_over = false;  // of what is due again, one may be tried
  PendingFree m_pending_free;
  SegmentQuarantine m_quarantine;
  GcGain m_gain;
  uint64_t m_moved_values = 0;  // ever
  CandidateChoice m_choice;
  std::vector<SegmentValues> m_candidates;
  Way m_way = Way::whole;  // theirs; one that is read is alone
  ValueScan m_scan;
  std::deque<SegmentValues> m_chosen;  // to be read next
  // Of those among them that a scan has been made for, by epoch: the offsets of what the tree points to, ascending.
  std::map<uint64_t, std::vector<uint64_t>> m_addresses;
  CandidateReader m_reader;
  LogSegment* m_segment = nullptr;
  uint64_t m_offset = 0;  // of what comes next in the candidate
  AlignedBuffer m_bytes;  // what m_slice was read from
  Slice m_slice;
  UnwrittenRelocations m_unwritten;
  MemtableGarbage m_memtable_garbage;
  SequenceNumber m_flushed = 0;  // everything in the candidates is at or below it, and in the tree
  Status m_freeing;  // what became of the last attempt
  static constexpr uint64_t kScan = 0;  // of the tree, in quarantine: no segment's epoch
  std::string m_scan_failed_at;  // behind this key
};

}  // namespace vtkv
