// SPDX-License-Identifier: LGPL-2.1-or-later
// The standard library's mutex and condition variable, told to clang's -Wthread-safety: nothing else is added to them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "vtkv/util/thread_annotations.h"

namespace vtkv {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { m_mutex.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return m_mutex.try_lock(); }
  void unlock() RELEASE() { m_mutex.unlock(); }

 private:
  friend class MutexLock;
  std::mutex m_mutex;
};

// Holds a mutex as long as it lives, but between unlock() and lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : m_lock(mutex.m_mutex) {}
  // Of one that is held already, by try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t) REQUIRES(mutex) : m_lock(mutex.m_mutex, std::adopt_lock) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() { m_lock.lock(); }
  void unlock() RELEASE() { m_lock.unlock(); }

 private:
  friend class ConditionVariable;
  std::unique_lock<std::mutex> m_lock;
};

// A predicate is called under the lock: [this]() REQUIRES(m_mutex) { return m_ready; }
class ConditionVariable {
 public:
  template <typename Predicate>
  void wait(MutexLock& lock, Predicate predicate) {
    m_condition.wait(lock.m_lock, std::move(predicate));
  }
  // What the predicate says at the end.
  template <typename Predicate>
  bool wait_for(MutexLock& lock, std::chrono::microseconds limit, Predicate predicate) {
    return m_condition.wait_for(lock.m_lock, limit, std::move(predicate));
  }
  void notify_one() { m_condition.notify_one(); }
  void notify_all() { m_condition.notify_all(); }

 private:
  std::condition_variable m_condition;
};

}  // namespace vtkv
