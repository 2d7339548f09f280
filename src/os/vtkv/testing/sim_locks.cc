// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_locks.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace vtkv {

namespace {

thread_local SimLockObserver* observer = nullptr;

}  // namespace

SimLockObserver* set_lock_observer(SimLockObserver* next) { return std::exchange(observer, next); }

}  // namespace vtkv

#if !defined(__SANITIZE_THREAD__)  // which stands there itself: with it, steps are not split

// The bounds of the program's code; the linker sets them.
extern "C" const char __executable_start;
extern "C" const char etext;

namespace {

// What the program would call without us.
template <typename Lock>
class LibraryFunction {
 public:
  int operator()(const char* name, Lock* lock) {
    Function function = m_function.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
      m_function.store(function, std::memory_order_relaxed);
    }
    return function(lock);
  }

 private:
  using Function = int (*)(Lock*);
  std::atomic<Function> m_function{nullptr};
};

constinit LibraryFunction<pthread_mutex_t> mutex_lock, mutex_unlock;
constinit LibraryFunction<pthread_rwlock_t> read_lock, write_lock, shared_unlock;

// Of the program's own code. Shared libraries lock inside their allocator, their unwinder, their log: to leave those in
// the middle and to call them again breaks them, and their threads hold locks that no step gives back.
bool is_ours(const void* caller) {
  const auto* const at = static_cast<const char*>(caller);
  return at >= &__executable_start && at < &etext;
}

// Another observer may be there afterwards: others have run.
template <typename Lock>
int take(Lock* lock, const void* caller, int (*attempt)(Lock*), LibraryFunction<Lock>& wait, const char* name) {
  if (vtkv::observer == nullptr || !is_ours(caller)) {
    return wait(name, lock);
  }
  vtkv::observer->at_lock();
  while (attempt(lock) == EBUSY) {
    vtkv::observer->wait_for_lock();
  }
  return 0;
}

void released(const void* caller) {
  if (vtkv::observer != nullptr && is_ours(caller)) {
    vtkv::observer->at_lock();
  }
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return take(mutex, __builtin_return_address(0), ::pthread_mutex_trylock, mutex_lock, "pthread_mutex_lock");
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  const int result = mutex_unlock("pthread_mutex_unlock", mutex);
  released(__builtin_return_address(0));
  return result;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept {
  return take(rwlock, __builtin_return_address(0), ::pthread_rwlock_tryrdlock, read_lock, "pthread_rwlock_rdlock");
}

int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept {
  return take(rwlock, __builtin_return_address(0), ::pthread_rwlock_trywrlock, write_lock, "pthread_rwlock_wrlock");
}

int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept {
  const int result = shared_unlock("pthread_rwlock_unlock", rwlock);
  released(__builtin_return_address(0));
  return result;
}

}  // extern "C"

#endif
