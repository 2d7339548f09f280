// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_interleaving.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fiber.h"

namespace vtkv {

namespace {

constexpr unsigned kOneInIos = 2;
constexpr unsigned kOneInLocks = 8;
constexpr unsigned kDoublingsMax = 9;      // of the turns that others get
constexpr unsigned kOwnDoublingsMax = 5;   // the test's own calls go on earlier
constexpr uint64_t kLockWaitsMax = 100'000;
constexpr uint64_t kHastyLockWaits = 1000;
constexpr std::chrono::microseconds kPatience{100};

// Of this thread, the newest last: the test's own calls are those of its env.
std::vector<SimInterleaving*>& interleavings() {
  static thread_local std::vector<SimInterleaving*> all;
  return all;
}

void observe_newest() { set_lock_observer(interleavings().empty() ? nullptr : interleavings().back()); }

}  // namespace

SimInterleaving::SimInterleaving(SimEnv* env, uint64_t seed) : m_env(env), m_random(seed) {
  interleavings().push_back(this);
  observe_newest();
}

SimInterleaving::~SimInterleaving() {
  std::erase(interleavings(), this);
  observe_newest();
}

void SimInterleaving::at_io() { let_others_run(kOneInIos); }

void SimInterleaving::at_lock() {
  m_lock_waits = 0;
  let_others_run(kOneInLocks);
}

void SimInterleaving::let_others_run(unsigned one_in) {
  const bool on_fiber = SimFiber::current() != nullptr;
  if ((!on_fiber && m_env->driving()) || m_random() % one_in != 0) {
    return;
  }
  const uint64_t turns = uint64_t{1} << m_random() % (on_fiber ? kDoublingsMax : kOwnDoublingsMax);
  if (on_fiber) {
    m_resume_at = m_turn + turns;
    SimFiber::pause();
    return;
  }
  for (uint64_t i = 0; i < turns && m_env->run_one(); ++i) {
  }
}

void SimInterleaving::wait_for_lock() {
  if (++m_lock_waits > kLockWaitsMax) {
    m_env->report_deadlock();
  }
  bool others_run = m_lock_waits <= kHastyLockWaits;
  if (SimFiber::current() != nullptr) {
    m_resume_at = m_turn + 1;
    SimFiber::pause();
  } else {
    others_run &= m_env->run_one();
  }
  if (!others_run) {  // a thread that is none of the simulator's may have it, for a moment
    std::this_thread::sleep_for(kPatience);
  }
}

}  // namespace vtkv
