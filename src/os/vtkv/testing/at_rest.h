// SPDX-License-Identifier: LGPL-2.1-or-later
// The oracle "at rest": when nobody writes any more, the workers of a database become idle, and from then on it writes
// nothing, however long it stays open and whatever snapshot or iterator is held.
#pragma once

#include <string>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {

// The violation in one sentence; empty when there is none. REQUIRES: no other database of `env` is open. Takes twenty
// minutes of the virtual clock.
std::string unrest(SimEnv* env, DB& db);

}  // namespace vtkv
