// SPDX-License-Identifier: LGPL-2.1-or-later
// Knows whether the host has refused io_uring to this process, whose I/O then goes by blocking system calls, slower:
// who serves somebody tells it there. Of the whole process. Thread-safe.
#pragma once

#include <string>

#include "vtkv/status.h"

namespace vtkv {

// REQUIRES: not ok. True: it is the first.
bool note_ring_refusal(const Status& refusal);
// What was refused first, why, and the remedy, as a sentence; empty: nothing was.
std::string ring_refusal();
// The sentence.
std::string describe_ring_refusal(const Status& refusal);

}  // namespace vtkv
