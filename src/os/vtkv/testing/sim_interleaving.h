// SPDX-License-Identifier: LGPL-2.1-or-later
// When the steps of a SimEnv's workers are left in the middle, and how long they stay so. Internal to it.
//
// Every direct I/O, lock and release of a lock is a place where the seed may let others come first: of a worker's
// step, which is left there, and of the test's own calls. For how many turns is drawn with a long tail, from one to
// some hundreds: a window that is two instructions wide is then open while a whole flush goes by.
#pragma once

#include <cstdint>
#include <random>

#include "vtkv/testing/sim_locks.h"

namespace vtkv {

class SimEnv;

class SimInterleaving final : public SimLockObserver {
 public:
  SimInterleaving(SimEnv* env, uint64_t seed);
  ~SimInterleaving() override;
  SimInterleaving(const SimInterleaving&) = delete;
  SimInterleaving& operator=(const SimInterleaving&) = delete;

  void at_io();
  void at_lock() override;
  void wait_for_lock() override;

  // Turns since the beginning: of a worker, a step or what is left of one, or of a request.
  uint64_t turn() const { return m_turn; }
  void next_turn() { ++m_turn; }
  // Nobody has anything to do before that one.
  void skip_to(uint64_t turn) { m_turn = turn; }
  // The step that paused last goes on at this turn.
  uint64_t resume_at() const { return m_resume_at; }

 private:
  void let_others_run(unsigned one_in);

  SimEnv* const m_env;
  std::mt19937_64 m_random;
  uint64_t m_turn = 0;
  uint64_t m_resume_at = 0;
  uint64_t m_lock_waits = 0;  // in a row
};

}  // namespace vtkv
