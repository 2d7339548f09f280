// SPDX-License-Identifier: LGPL-2.1-or-later
// The background workers of one database, by what they do; and whether they are to give up what they are at.
//
// They wake one another, also while they start and while they end: who is not here is not woken.
//
// Thread-safe. start() waits with the lock for the new threads; end() waits for the steps under way, without it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

// Of the worker that compacts, for an Env that runs it in another way than the rest (shared_threads.h).
inline constexpr const char* kCompactionWorkerName = "vtkv_compaction";

class Workers {
 public:
  enum class Role : uint8_t { flush, compaction, log, gc };
  struct Start {
    Role role;
    const char* name;
    unsigned io_depth;
    Worker::Step step;
  };

  explicit Workers(Env* env) : m_env(env) {}
  // REQUIRES: each was ended. What their steps use may be gone by now.
  ~Workers() {
    for (const std::unique_ptr<Worker>& worker : m_workers) {
      VTKV_ASSERT(!worker);
    }
  }

  // None of them is woken by another before all are here.
  void start(std::vector<Start> starts) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    for (Start& one : starts) {
      m_workers[index(one.role)] = m_env->start_worker(one.name, one.io_depth, std::move(one.step));
    }
  }
  void wake(Role role) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    if (const auto& worker = m_workers[index(role)]) {
      worker->wake();
    }
  }
  // In a fork, which has none of the threads: whatever state they were in stays so.
  void abandon() NO_THREAD_SAFETY_ANALYSIS {
    for (std::unique_ptr<Worker>& worker : m_workers) {
      static_cast<void>(worker.release());
    }
  }
  // Steps do nothing more that takes long. Set first of all when a database is closed.
  void stop() { m_stopping.store(true); }
  bool stopping() const { return m_stopping.load(); }
  // Ends them in this order. None of them is woken from when the first one ends.
  void end(const std::vector<Role>& roles) EXCLUDES(m_lock) {
    std::vector<std::unique_ptr<Worker>> ending;
    {
      MutexLock lock(m_lock);
      for (const Role role : roles) {
        ending.push_back(std::move(m_workers[index(role)]));
      }
    }
    for (std::unique_ptr<Worker>& worker : ending) {
      worker.reset();
    }
  }

 private:
  static size_t index(Role role) { return static_cast<size_t>(role); }

  Env* const m_env;
  std::atomic<bool> m_stopping{false};
  Mutex m_lock;
  std::array<std::unique_ptr<Worker>, 4> m_workers GUARDED_BY(m_lock);
};

}  // namespace vtkv
