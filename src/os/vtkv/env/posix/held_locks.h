// SPDX-License-Identifier: LGPL-2.1-or-later
// The lock files that this process holds, for the rings that are to refer to them (io_ring.h).
//
// Thread-safe. Waits for nothing but its own lock, which is held over unlocking, closing and a ring's registration.
#pragma once

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "vtkv/util/mutex.h"

namespace vtkv {

class HeldLocks {
 public:
  static constexpr size_t kMax = 256;

  // At its place among these; -1: there is none.
  struct Lock {
    int descriptor = -1;
    uint64_t changed = 0;  // in that version
  };
  using Locks = std::array<Lock, kMax>;

  // False: there are too many.
  bool add(int descriptor) EXCLUDES(m_mutex) {
    const MutexLock guard(m_mutex);
    return replace(-1, descriptor);
  }
  // Unlocks and closes it. A ring may still refer to the description: closing alone would not unlock.
  void give_up(int descriptor) EXCLUDES(m_mutex) {
    const MutexLock guard(m_mutex);
    replace(descriptor, -1);
    ::flock(descriptor, LOCK_UN);
    ::close(descriptor);
  }
  // Moves with each change.
  uint64_t version() const { return m_version.load(); }
  // Calls with all places, and the version that they are; none is given up meanwhile.
  template <typename Use>
  auto use(Use use) const EXCLUDES(m_mutex) {
    const MutexLock guard(m_mutex);
    return use(m_locks, version());
  }

 private:
  bool replace(int from, int to) REQUIRES(m_mutex) {
    const auto found =
        std::find_if(m_locks.begin(), m_locks.end(), [from](const Lock& lock) { return lock.descriptor == from; });
    if (found == m_locks.end()) {
      return false;
    }
    *found = {to, m_version.load() + 1};
    m_version.fetch_add(1);
    return true;
  }

  mutable Mutex m_mutex;
  Locks m_locks GUARDED_BY(m_mutex);
  std::atomic<uint64_t> m_version{1};
};

}  // namespace vtkv
