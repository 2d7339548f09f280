// SPDX-License-Identifier: LGPL-2.1-or-later
// Compactions of the tree, one at a time, as they become due or somebody asks; and passes of defragmentation, when no
// compaction is due.
//
// The compaction worker's, but for what others ask of it. compact() and defragment() wait; the step waits for nothing
// but the tree's files, and holds no lock of this class meanwhile.
#pragma once

#include <atomic>

#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/env/background_errors.h"
#include "vtkv/env/workers.h"
#include "vtkv/iter/read_states.h"
#include "vtkv/tree/defragmenter.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class Compactor {
 public:
  Compactor(Env* env, Tree* tree, ReadStates* states, CommitPipeline* pipeline, BackgroundErrors* errors,
            Workers* workers, Waiters* waiters)
      : m_env(env),
        m_tree(tree),
        m_states(states),
        m_pipeline(pipeline),
        m_errors(errors),
        m_workers(workers),
        m_waiters(waiters),
        m_defragmenter(tree) {}

  // The compaction worker's step.
  NextStep step() EXCLUDES(m_lock);

  // Thread-safe, all that follow. Waits until the tree is one run.
  Status compact() EXCLUDES(m_lock);
  // See DB. The number of the pass.
  uint64_t begin_defragment(const DefragmentOptions& options) EXCLUDES(m_lock);
  void stop_defragment() EXCLUDES(m_lock);
  Status defragment(const DefragmentOptions& options) EXCLUDES(m_lock);
  DefragmentReport defragment_report() const EXCLUDES(m_lock);
  uint64_t defragmented_bytes() const { return m_defragmenter.moved_in_all(); }

 private:
  // When a pass is wanted or under way: does a step, or says how long its rate has it *wait. *ended: the number of a
  // pass that is over.
  Status defragment_step(bool* did, std::chrono::microseconds* wait, uint64_t* ended) EXCLUDES(m_lock);
  // Why no step is done any more.
  Status stopped() const;
  // What became of it, and of what it did in between.
  void note(const Status& status);

  Env* const m_env;
  Tree* const m_tree;
  ReadStates* const m_states;
  CommitPipeline* const m_pipeline;
  BackgroundErrors* const m_errors;
  Workers* const m_workers;
  Waiters* const m_waiters;

  Defragmenter m_defragmenter;
  uint64_t m_quarantined = 0;  // the worker's: compactions that were, and that were noted
  uint64_t m_defragment_resumes_us = 0;  // likewise: the next step
  bool m_has_emptied_zones = false;  // likewise: a pass did, and they are to be given back when none is under way
  std::atomic<uint64_t> m_compactions_wanted{0};
  std::atomic<uint64_t> m_compactions_done{0};
  std::atomic<uint64_t> m_defragments_done{0};
  mutable Mutex m_lock;  // what is asked of the worker, and what became of it
  DefragmentOptions m_defragment_options GUARDED_BY(m_lock);
  uint64_t m_defragments_wanted GUARDED_BY(m_lock) = 0;
  uint64_t m_defragments_started GUARDED_BY(m_lock) = 0;
  uint64_t m_defragments_stopped GUARDED_BY(m_lock) = 0;  // all passes up to this one
  Status m_compact_error GUARDED_BY(m_lock), m_defragment_error GUARDED_BY(m_lock);  // of the newest attempt
};

}  // namespace vtkv
