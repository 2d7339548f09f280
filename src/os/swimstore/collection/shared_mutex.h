// SPDX-License-Identifier: LGPL-2.1-or-later
// A mutex that several threads may hold shared, or one alone: the standard library's, told to clang's -Wthread-safety,
// as vtkv/util/mutex.h is.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <thread>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

// A function: its caller holds the lock, shared or alone.
#define REQUIRES_SHARED(...) VTKV_ANNOTATION(requires_shared_capability(__VA_ARGS__))
// It takes the lock shared, or releases it.
#define ACQUIRE_SHARED(...) VTKV_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) VTKV_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE_SHARED(...) VTKV_ANNOTATION(try_acquire_shared_capability(__VA_ARGS__))
// It ends the process unless the caller holds the lock alone.
#define ASSERT_CAPABILITY(lock) VTKV_ANNOTATION(assert_capability(lock))
// The caller holds it, at least shared; nothing checks it.
#define ASSERT_SHARED_CAPABILITY(lock) VTKV_ANNOTATION(assert_shared_capability(lock))

namespace swimstore {

class CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() ACQUIRE() {
    m_mutex.lock();
    m_owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() RELEASE() {
    m_owner.store({}, std::memory_order_relaxed);
    m_mutex.unlock();
  }
  void lock_shared() ACQUIRE_SHARED() { m_mutex.lock_shared(); }
  bool try_lock_shared() TRY_ACQUIRE_SHARED(true) { return m_mutex.try_lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { m_mutex.unlock_shared(); }

  // For those who took it by a list of locks, which clang cannot follow: this thread holds it alone.
  void assert_held() const ASSERT_CAPABILITY(this) {
    VTKV_ASSERT(m_owner.load(std::memory_order_relaxed) == std::this_thread::get_id());
  }

  // The same where it is held at least shared; by whom, nobody knows.
  void assert_held_shared() const ASSERT_SHARED_CAPABILITY(this) {}

 private:
  std::shared_mutex m_mutex;
  std::atomic<std::thread::id> m_owner{};  // who holds it alone
};

// Holds it alone as long as it lives, but after unlock().
class SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) ACQUIRE(mutex) : m_lock(mutex) {}
  ~ExclusiveLock() RELEASE() {}
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

  void unlock() RELEASE() { m_lock.unlock(); }

 private:
  std::unique_lock<SharedMutex> m_lock;
};

// Holds it shared as long as it lives.
class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : m_lock(mutex) {}
  ~SharedLock() RELEASE() {}
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  std::shared_lock<SharedMutex> m_lock;
};

}  // namespace swimstore
