// SPDX-License-Identifier: LGPL-2.1-or-later
// Threads of the database's users that wait for something that workers do, or for the end of all.
//
// What they wait for is atomic: the lock guards no member, and whoever changes something takes it before it notifies,
// so that nobody misses it between a look and the wait. Nothing is taken when nobody waits.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "vtkv/commit/fatal_error.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class Waiters {
 public:
  // `error`: what ends every wait.
  Waiters(Env* env, const FatalError* error) : m_error(*error), m_signal(env->new_signal()) {}

  // Waits until `done` holds, or returns why the database stopped. What is done may be undone at once, by another one.
  Status wait_until(const std::function<bool()>& done) EXCLUDES(m_lock) {
    bool is_done = false;
    wait([&] { return (is_done = done()) || m_error.is_set(); });
    return is_done ? Status() : m_error.status();
  }
  // Also when the database has stopped.
  void wait(const std::function<bool()>& done) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    m_waiting.fetch_add(1);
    m_signal->wait(lock, done);
    m_waiting.fetch_sub(1);
  }
  // Something changed that may be waited for.
  void notify() EXCLUDES(m_lock) {
    if (m_waiting.load() > 0) {
      MutexLock lock(m_lock);
      m_signal->notify_all();
    }
  }

 private:
  const FatalError& m_error;
  Mutex m_lock;
  const std::unique_ptr<Signal> m_signal;
  std::atomic<int> m_waiting{0};
};

}  // namespace vtkv
