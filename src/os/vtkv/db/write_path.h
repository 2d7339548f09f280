// SPDX-License-Identifier: LGPL-2.1-or-later
// How a batch gets in: its sequence numbers, the active memtable, and the commit queue, in one order for all of them.
//
// Who writes holds the write lock for that, and for nothing that waits: it is never held over I/O. With it a full
// memtable is closed, too, and the participant asked for what its checkpoint needs.
//
// Memtables have a bound (mem/memtable_bound.h): write() waits, before it inserts, until a flush has made room, each
// writer behind those who waited before. A batch that is larger than the bound goes when nothing else is there.
//
// Thread-safe. write() waits for room, too; for the commit when its caller asks for that, when the batch is empty or
// larger than a record, or when too much is unwritten. Nothing else here waits.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "vtkv/blob/relocator.h"
#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/db/waiting_writer.h"
#include "vtkv/env/workers.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class WritePath final : public Relocator {
 public:
  WritePath(Env* env, const Options& options, Tree* tree, ReadStates* states, CommitPipeline* pipeline,
            Waiters* waiters, Workers* workers)
      : m_env(env),
        m_options(options),
        m_tree(tree),
        m_states(states),
        m_pipeline(pipeline),
        m_waiters(waiters),
        m_workers(workers),
        m_room(env->new_signal()),
        m_idle_writers(env) {}

  // After a recovery, which left `active`, and `closed`, the oldest first, and ended at `position`; what is at or below
  // `content` was not empty. `recovered_bytes`: of the log since the checkpoint. True: the active memtable is full.
  // Readers may begin.
  bool begin(std::shared_ptr<MemTable> active, const std::vector<ClosedMemTable>& closed, SequenceNumber position,
             SequenceNumber content, uint64_t recovered_bytes = 0) EXCLUDES(m_lock);

  void submit(Submission* submission) EXCLUDES(m_lock);
  Status write(WriteBatch batch, const WriteOptions& options) EXCLUDES(m_lock);
  // Of values whose keys may be in a memtable that was flushed since `checked`: Code::busy, check again. So it says,
  // too, while the memtables are crowded.
  Status relocate(std::span<const Relocation> values, SequenceNumber checked, Relocated* relocated) override
      EXCLUDES(m_lock);
  // Closes the memtable when there is anything that a checkpoint would change; returns how many memtables must have
  // been flushed for everything so far to be in the tree.
  uint64_t close_memtable() EXCLUDES(m_lock);
  // As in DB.
  void advance_reuse_horizon();
  // A memtable was flushed, or nobody is to wait any more: all failed, or the workers stop.
  void notify_room() EXCLUDES(m_lock);

  void add_statistics(DBStatistics* statistics) const;

 private:
  void submit(Submission* submission, bool may_wait) EXCLUDES(m_lock);
  // `kept`: as MemTable::growth_most. Also returns when the database has failed; the lock is given up meanwhile.
  void await_room(MutexLock& lock, const WriteBatch& batch, size_t kept) REQUIRES(m_lock);
  bool has_room(const WriteBatch& batch, size_t kept) const REQUIRES(m_lock);
  // True: the commit worker has to be woken.
  bool insert(Submission* submission) REQUIRES(m_lock);
  bool insert_into_write_buffer(const WriteBatch& batch) REQUIRES(m_lock);
  LogAddress* insert_operations(std::string_view encoded, uint32_t sequence_count) REQUIRES(m_lock);
  bool memtable_is_full() const REQUIRES(m_lock);
  size_t kept_bytes_wanted() const REQUIRES(m_lock);
  void switch_memtable() REQUIRES(m_lock);
  Status write_and_wait(WriteBatch batch);

  Env* const m_env;
  const Options& m_options;
  Tree* const m_tree;
  ReadStates* const m_states;
  CommitPipeline* const m_pipeline;
  Waiters* const m_waiters;
  Workers* const m_workers;

  Mutex m_lock;  // the write lock
  std::shared_ptr<MemTable> m_active GUARDED_BY(m_lock);  // who inserts holds it; readers need no lock
  SequenceNumber m_last_sequence GUARDED_BY(m_lock) = 0;
  SequenceNumber m_last_closed GUARDED_BY(m_lock) = 0;  // last sequence of the newest closed memtable
  uint64_t m_memtables_closed GUARDED_BY(m_lock) = 0;
  uint64_t m_log_bytes_at_switch GUARDED_BY(m_lock) = 0;
  size_t m_collected_bytes GUARDED_BY(m_lock) = 0;  // by which the participant's entries made the newest of them larger
  // Turns of those who have to wait for room: given out, and gone.
  uint64_t m_turns GUARDED_BY(m_lock) = 0;
  uint64_t m_turns_gone GUARDED_BY(m_lock) = 0;
  const std::unique_ptr<Signal> m_room;
  std::atomic<int> m_awaiting_room{0};
  uint64_t m_recovered_bytes GUARDED_BY(m_lock) = 0;  // of the log that the active memtable is of

  std::atomic<SequenceNumber> m_last_content{0};  // last sequence that was not an empty record's
  std::atomic<bool> m_horizon_submitted{false};
  std::atomic<uint64_t> m_waits{0};
  std::atomic<uint64_t> m_waited_us{0};
  IdleWriters m_idle_writers;
};

}  // namespace vtkv
