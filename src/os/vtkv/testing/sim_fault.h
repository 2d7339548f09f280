// The kinds of I/O that tests let fail, one by one: the n-th call of a kind, or all from the n-th on.
#pragma once

#include <vector>

#include "vtkv/testing/sim_env.h"

namespace vtkv {

struct SimFault {
  const char* name;  // of the test's instance
  SimCall call;
  bool persistent;
};

// Those that every user of files meets, and `more`.
inline std::vector<SimFault> sim_faults(const SimFault& more) {
  return {{"read_once", SimCall::read, false},
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
          more};
}

}  // namespace vtkv
