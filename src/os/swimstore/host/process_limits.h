// SPDX-License-Identifier: LGPL-2.1-or-later
// Limits of the process that a store cannot work under.
#pragma once

#include "vtkv/status.h"

namespace swimstore {

// Code::invalid_argument names RLIMIT_FSIZE, its value and the remedy: the store's files grow with its data, and one
// that may not any more ends the OSD in the middle of its work.
vtkv::Status check_file_size_limit();

// From then on a write beyond that limit fails by EFBIG, in place of a signal that ends the process. Of the whole
// process: Ceph's handler of the signal would call it a crash.
void ignore_file_size_signal();

}  // namespace swimstore
