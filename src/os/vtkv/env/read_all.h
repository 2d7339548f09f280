// SPDX-License-Identifier: LGPL-2.1-or-later
// Several reads for one thread that waits for all of them.
//
// Those of host files go to the kernel together, over an io_uring that the calling thread keeps: a device works on
// many requests at once, and what has arrived can be looked at while the rest is under way. Others, and all where the
// host refuses io_uring, are read one by one. Only reads: what a killed process leaves under way harms nobody, so the
// ring holds no lock (compare io_ring.h).
#pragma once

#include <functional>
#include <span>

#include "vtkv/env.h"

namespace vtkv {

struct ReadRequest {
  File* file = nullptr;
  uint64_t offset = 0;
  size_t length = 0;
  char* destination = nullptr;
  Status result;  // valid once told; as of File::read
};

// Returns when all have ended. Tells of each as it ends, in any order, on the calling thread, which must not call
// this again from there. Any number of threads may call it at once. REQUIRES: all files come from the same Env.
void read_all(std::span<ReadRequest> requests, const std::function<void(ReadRequest&)>& ended);

}  // namespace vtkv
