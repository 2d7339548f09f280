// SPDX-License-Identifier: LGPL-2.1-or-later
// The locks of the code under test, as a SimEnv sees them: std::mutex and std::shared_mutex, through the C library's
// functions, which sim_locks.cc stands in front of. Those that a shared library takes are left alone. Internal to
// SimEnv.
//
// A step that was left in the middle may hold a lock. Whoever wants it then must not wait for it as threads do, for
// there is one thread only: it lets the others run.
#pragma once

namespace vtkv {

class SimLockObserver {
 public:
  virtual ~SimLockObserver() = default;
  // A lock is about to be asked for, or was released: others may come first.
  virtual void at_lock() = 0;
  // It is taken: lets others run, one of whom holds it, or a thread of the program that is not simulated.
  virtual void wait_for_lock() = 0;
};

// Of this thread; null: locks are as they always are. Returns the one before.
SimLockObserver* set_lock_observer(SimLockObserver* observer);

}  // namespace vtkv
