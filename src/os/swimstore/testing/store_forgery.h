// SPDX-License-Identifier: LGPL-2.1-or-later
// What becomes of a small store whose image was forged (forged_image.h): it is mounted, read, written, emptied, checked
// and repaired.
//
// Allowed: an error, a store that is refused with a reason, wrong data. Never: an abort, an exception, no end.
//
// Not thread-safe.
#pragma once

#include <string>

#include "include/common_fwd.h"

#include "vtkv/testing/sim_env.h"

namespace swimstore {

class StoreForgery {
 public:
  // Makes the store.
  StoreForgery(CephContext* cct, uint64_t seed);

  struct Outcome {
    std::string what;  // was forged
    bool mounted = false;  // it was not refused
    uint64_t errors = 0;  // of calls
    uint64_t findings = 0;  // of the check afterwards
  };
  // Each case is decided by its number.
  Outcome run(uint64_t number);

 private:
  CephContext* const m_cct;
  vtkv::SimEnv m_env;
};

}  // namespace swimstore
