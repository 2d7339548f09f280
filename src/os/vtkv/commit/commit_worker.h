// SPDX-License-Identifier: LGPL-2.1-or-later
// The commit worker's thread, as others see it who may begin before it and outlive it.
//
// Thread-safe: wake() between start() and stop(), wake_unless_stopped() at any time. start() waits with the lock for
// the new thread; stop() waits for the worker's step to end, without it.
#pragma once

#include <memory>

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class CommitWorker {
 public:
  void start(Env* env, unsigned io_depth, Worker::Step step) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);  // others may wake it meanwhile
    m_worker = env->start_worker("vtkv_commit", io_depth, std::move(step));
  }
  void stop() EXCLUDES(m_lock) {
    {
      MutexLock lock(m_lock);
      m_stopped = true;
    }
    m_worker.reset();
  }
  void wake() { m_worker->wake(); }
  void wake_unless_stopped() EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    if (!m_stopped && m_worker) {  // in this order: stop() resets it without the lock
      m_worker->wake();
    }
  }

 private:
  Mutex m_lock;
  bool m_stopped GUARDED_BY(m_lock) = false;
  // Set under the lock by start(), reset by stop(): in between, as long as submissions may come, it stays.
  std::unique_ptr<Worker> m_worker;
};

}  // namespace vtkv
