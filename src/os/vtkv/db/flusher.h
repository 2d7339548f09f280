// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes closed memtables to the tree, the oldest first, each as soon as all of it is durable; each is a checkpoint.
//
// The flush worker's, but for what others ask of it. flush() waits; the step waits for nothing but the tree's files,
// and holds no lock of this class meanwhile.
#pragma once

#include <atomic>
#include <optional>

#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/db/log_maintenance.h"
#include "vtkv/db/write_path.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/workers.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class Flusher {
 public:
  Flusher(Tree* tree, ReadStates* states, CommitPipeline* pipeline, WritePath* writes, LogMaintenance* log,
          BackgroundErrors* errors, Workers* workers, Waiters* waiters)
      : m_tree(tree),
        m_states(states),
        m_pipeline(pipeline),
        m_writes(writes),
        m_log(log),
        m_errors(errors),
        m_workers(workers),
        m_waiters(waiters) {}

  // The flush worker's step.
  NextStep step();

  // Thread-safe, these three. Waits until everything submitted so far is in the tree.
  Status flush() EXCLUDES(m_lock);
  // Closes the memtable and writes it, soon.
  void request();
  // Both copies of the manifest are to be written anew.
  void request_checkpoint();

 private:
  NextStep flush_one(const ClosedMemTable& closed, const LogPosition& position);
  NextStep flush_failed(const Status& status) EXCLUDES(m_lock);
  void finish_flush();
  bool waits_for_compaction(const MemTable& memtable) const;
  // Nothing to flush.
  NextStep idle() const;

  Tree* const m_tree;
  ReadStates* const m_states;
  CommitPipeline* const m_pipeline;
  WritePath* const m_writes;
  LogMaintenance* const m_log;
  BackgroundErrors* const m_errors;
  Workers* const m_workers;
  Waiters* const m_waiters;

  std::optional<ClosedMemTable> m_written;  // the worker's: in the tree, and not dropped yet
  std::atomic<bool> m_wanted{false};
  std::atomic<unsigned> m_manifest_copies_wanted{0};  // to be written anew
  std::atomic<uint64_t> m_memtables_flushed{0};
  std::atomic<uint64_t> m_failures{0};
  Mutex m_lock;
  Status m_error GUARDED_BY(m_lock);  // of the newest attempt that failed
};

}  // namespace vtkv
