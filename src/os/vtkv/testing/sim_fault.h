// SPDX-License-Identifier: LGPL-2.1-or-later
// The kinds of I/O that tests let fail, one by one: the n-th call of a kind, or all from the n-th on.
#pragma once

#include <cerrno>
#include <initializer_list>
#include <vector>

#include "vtkv/testing/sim_env.h"

namespace vtkv {

struct SimFault {
  const char* name;  // of the test's instance
  SimCall call;
  bool persistent;
  int error_number = EIO;
};

// Those that every user of files meets, and `more`.
inline std::vector<SimFault> sim_faults(std::initializer_list<SimFault> more) {
  std::vector<SimFault> faults = {
      {"read_once", SimCall::read, false},
      {"read_always", SimCall::read, true},
      {"write_once", SimCall::write, false},
      {"write_always", SimCall::write, true},
      {"sync_once", SimCall::sync, false},
      {"sync_always", SimCall::sync, true},
      {"allocate_once", SimCall::allocate, false},
      {"allocate_always", SimCall::allocate, true},
      {"truncate_once", SimCall::truncate, false},
      {"open_once", SimCall::open, false},
      {"open_always", SimCall::open, true},
      {"rename_once", SimCall::rename, false},
      {"rename_always", SimCall::rename, true},
      {"sync_directory_once", SimCall::sync_directory, false},
      {"sync_directory_always", SimCall::sync_directory, true},
      {"size_once", SimCall::size, false},
      {"size_always", SimCall::size, true},
      {"list_directory_once", SimCall::list_directory, false},
      {"list_directory_always", SimCall::list_directory, true},
  };
  faults.insert(faults.end(), more);
  return faults;
}

// The n-th call of its kind from now on fails, or all from the n-th on: for n = 1, 2, … until a test runs clean.
class NthFailure {
 public:
  NthFailure(SimEnv* env, SimCall call, uint64_t n, bool persistent = false, int error_number = EIO)
      : m_env(env), m_call(call), m_nth(env->calls(call) + n) {
    env->fail_nth(call, n, Status::from_errno(error_number, "injected"), persistent);
  }
  // Nothing fails any more. Did it come to the n-th call?
  bool end() {
    m_env->clear_faults();
    return m_env->calls(m_call) >= m_nth;
  }

 private:
  SimEnv* const m_env;
  const SimCall m_call;
  const uint64_t m_nth;
};

}  // namespace vtkv
