// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes submissions durable: group commit (doc/crash_consistency.md, doc/vtkv.md).
//
// One worker, one state machine. Its naive version writes a batch's data, then its record, then syncs, one
// batch at a time. What differs:
//   * data goes out as soon as its submission is dequeued; adjacent slices share a request;
//   * a record holds everything queued when the group before it was durable, so that groups grow with the load; the
//     data of a group and its record are written at the same time, in any order;
//   * a submission with large data joins a record when its data is written, and no record is formed during a flush
//     that also converts extents: what comes meanwhile shares the next;
//   * under a heavy load several records are under way at once;
//   * relaxed submissions are told when they are written, and wait for a flush that somebody needs, within bounds;
//     meanwhile records go on;
//   * while memtables take too much memory, no record is formed that their flushes can do without;
//   * while one group is being flushed the next is written when it is full or nobody waits for it. Otherwise it is
//     formed when the flush is over and those whom it woke are back (group_pacer.h). Much data goes out meanwhile.
//
// Invariants:
//   1. Records are formed and their writes started in sequence order; a few may be under way at once. What a crash
//      leaves of them is cut off where the chain has its first hole.
//   2. A group's flush is issued after all of its own writes were reaped. durable_seq moves over a group when its own
//      flush and those of all groups before it have completed: flushes are issued in group order, one at a
//      time (one flush may serve several groups that were written before it was issued).
//   3. A record carries the durable_seq of when it was formed.
//   4. A batch that is larger than a segment is cut into fragments, each with a record and a group of its own.
//      durable_seq moves over all of them at once, with the last.
//   5. After a failed write or flush nothing is written, flushed or acknowledged any more.
//
//   submission:   queued -> dequeued (its data in flight) -> in a group -> durable
//   write buffer: open -> dequeued -> in a group -> logged (its memory may go) -> durable
//   group:        held back (the group-commit delay: delays_group_commit) -> writing (form_record) -> written (on_done)
//                 -> flushing (start_flush; relaxed ones are held back: delays_flush) -> durable (finish_flush)
//
// The worker's state is in parts, its own: DequeuedWrites, DataWrites, CommitGroups, GroupFlush, CommitRequests. What
// others see of it: CommitQueue, CommitProgress, FatalError, CommitCounters.
//
// Thread-safe but for enqueue() and append(). Nothing here waits but start() and stop().
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "vtkv/commit/commit_counters.h"
#include "vtkv/commit/commit_groups.h"
#include "vtkv/commit/commit_progress.h"
#include "vtkv/commit/commit_queue.h"
#include "vtkv/commit/commit_requests.h"
#include "vtkv/commit/commit_worker.h"
#include "vtkv/commit/data_writes.h"
#include "vtkv/commit/dequeued_writes.h"
#include "vtkv/commit/fatal_error.h"
#include "vtkv/commit/group_flush.h"
#include "vtkv/commit/group_interval.h"
#include "vtkv/db.h"
#include "vtkv/util/group_pacer.h"
#include "vtkv/wal/log_writer.h"

namespace vtkv {

// What the pipeline tells its database. All on the commit worker, no lock held.
class CommitObserver {
 public:
  virtual ~CommitObserver() = default;
  // durable_seq moved, or batches that nobody waits for were written, or everything failed; durable() was called where
  // due.
  virtual void commit_advanced() = 0;
  // How long to hold the next group back, so that writers do not outrun the flush.
  virtual std::chrono::microseconds throttle_delay() = 0;
  // Do the memtables take so much that no record is to be formed but those that a flush waits for? Whoever ends that
  // wakes the worker.
  virtual bool memtables_are_crowded() = 0;
};

class CommitPipeline {
 public:
  CommitPipeline(Env* env, const Options& options, SegmentPool* pool, const Uuid& uuid, const LogPosition& start,
                 SequenceNumber horizon, CommitObserver* observer);
  ~CommitPipeline();
  void start();
  // Ends the worker. REQUIRES: outstanding() == 0, and no enqueue() from here on.
  void stop();

  // In sequence order, serialized by the caller. True: wake() afterwards, without the caller's locks.
  bool enqueue(Submission* submission);
  // What is larger is to be cut into fragments (Submission::fragments), of at most fragment_bytes() where its
  // operations are no larger.
  uint64_t record_bytes_most() const {
    return std::min<uint64_t>(m_writer.segment_room() - sizeof(batch_frame_t), kUncutBytesMost);
  }
  uint64_t fragment_bytes() const { return std::min<uint64_t>(record_bytes_most() / 4, 8u << 20); }
  // A batch whose writer does not wait for it; *copy is its address in *write_buffer. True: wake().
  bool append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last,
              std::shared_ptr<WriteBuffer>* write_buffer, std::string_view* copy);
  // Somebody waits until all up to `sequence` is durable, be it in the open write buffer or relaxed.
  void hurry(SequenceNumber sequence) {
    want_durable(sequence);
    m_queue.close_write_buffer();
    wake();
  }
  // Of appended batches that are not in the log's file yet.
  uint64_t write_buffer_bytes() const { return m_write_buffer_bytes.load(); }
  // What one takes in memory that append() opens for a batch of so many bytes.
  size_t write_buffer_capacity(size_t batch_bytes) const { return m_queue.write_buffer_capacity(batch_bytes); }
  void wake() { m_worker.wake(); }
  // For other workers, which may begin before this one and outlive it.
  void wake_unless_stopped() { m_worker.wake_unless_stopped(); }
  // The record that holds `sequence`, the last one enqueued, ends with it.
  void request_flush_point(SequenceNumber sequence) {
    want_durable(sequence);
    m_queue.request_flush_point(sequence);
  }
  // The position after the record that ends with a requested flush point; false while it is not formed.
  bool flush_point_position(SequenceNumber sequence, LogPosition* position) const {
    return m_queue.flush_point_position(sequence, position);
  }
  // One that a recovery has met, in the order of the log; before start().
  void add_flush_point(const LogPosition& position) { m_queue.add_flush_point(position); }
  void forget_flush_points_before(SequenceNumber sequence) { m_queue.forget_flush_points_before(sequence); }

  SequenceNumber durable_sequence() const { return m_progress.durable(); }
  // Everything at or below it is in the log's files, where it can be read; a crash may still take it.
  SequenceNumber logged_sequence() const { return m_progress.logged(); }
  SequenceNumber reuse_horizon() const { return m_progress.reuse_horizon(); }
  // A checkpoint at `sequence` is durable.
  void checkpoint_advanced(SequenceNumber sequence);
  // Submissions whose durable() has not returned.
  uint64_t outstanding() const { return m_outstanding.load(); }

  // Stops everything; the reason goes to whoever waits.
  void fail(const Status& status);
  bool failed() const { return m_failure.is_set(); }
  Status failure() const { return m_failure.status(); }
  const FatalError& fatal_error() const { return m_failure; }

  uint64_t log_bytes() const { return m_counters.log_bytes(); }
  void add_statistics(DBStatistics* statistics) const;

 private:
  static constexpr uint64_t kUncutBytesMost = 64u << 20;  // of a batch, however large segments are
  static constexpr size_t kMaxRelaxedGroups = 256;
  static constexpr uint64_t kMaxRelaxedBytes = 32u << 20;

  NextStep step(IoQueue& io);
  NextStep do_step(IoQueue& io);
  void want_durable(SequenceNumber sequence);
  bool dequeue(IoQueue& io, std::chrono::microseconds* wait);
  bool may_form(std::chrono::microseconds* wait);
  bool awaits_memory() const;
  bool delays_group_commit(std::chrono::microseconds* wait);
  void tell_pacer(size_t more_waiting = 0);
  void be_paced_by(GroupPacer* pacer);
  bool awaits_flush() const { return m_groups.flushing() || m_pacer->flushing(); }
  size_t wake_threshold() const;
  bool form_record(IoQueue& io);
  size_t choose_batches(size_t* bytes);  // how many of the ungrouped go into the next record
  void write_record(IoQueue& io, CommitGroup* group);
  void tell_horizon();
  bool reap(IoQueue& io);
  void on_done(CommitRequest& request);
  static Status tell_owner(const CommitRequest& request);
  static void data_done(DequeuedWrite& dequeued);
  void note_logged();
  void tell_written();
  bool delays_flush(std::chrono::microseconds* wait);
  bool start_flush(IoQueue& io, std::chrono::microseconds* wait);
  void end_one(const DequeuedWrite& dequeued, const Status& status);
  void finish_flush();
  bool flush_out_of_order();
  void acknowledge(size_t first, size_t count);
  void drain_failed(IoQueue& io);

  Env* const m_env;
  const Options& m_options;
  CommitObserver* const m_observer;
  LogWriter m_writer;

  CommitQueue m_queue;
  CommitProgress m_progress;
  FatalError m_failure;
  CommitCounters m_counters;
  std::atomic<uint64_t> m_outstanding{0};
  std::atomic<uint64_t> m_write_buffer_bytes{0};
  // What is not durable up to here is flushed as soon as it is written.
  std::atomic<SequenceNumber> m_wanted_durable{0};
  // So many strict submissions, if they have little data, have to be in the queue before the worker is woken.
  std::atomic<size_t> m_wake_at{0};

  // The worker's own.
  DequeuedWrites m_dequeued;
  CommitGroups m_groups;
  GroupFront m_told_logged;  // note_logged()
  GroupFront m_told_written;  // tell_written()
  CommitRequests m_requests;
  DataWrites m_data;
  GroupFlush m_flush;
  // The pacer of the last flush: its own, or that of its queue if others shared it.
  GroupPacer m_own_pacer;
  GroupPacer* m_pacer = &m_own_pacer;
  PacedWriter m_paced;  // by m_pacer
  bool m_is_held = false;  // what waits for a record is, by the pacer
  bool m_awaits_memory = false;  // what waits for a record does, until a memtable is flushed
  GroupInterval m_interval;
  std::vector<BatchView> m_views;  // scratch
  std::vector<IoRequest*> m_completed;  // scratch
  bool m_failure_told = false;
  SequenceNumber m_horizon_told;

  CommitWorker m_worker;
};

}  // namespace vtkv
