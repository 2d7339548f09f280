// SPDX-License-Identifier: LGPL-2.1-or-later
// The database ends with its tree: when it cannot be said what of the tree is durable, nothing can be acknowledged any
// more.
#pragma once

#include "vtkv/commit/commit_pipeline.h"
#include "vtkv/commit/waiters.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

// After work on the tree that may have failed. Thread-safe.
inline void stop_with_tree(const Tree& tree, CommitPipeline* pipeline, Waiters* waiters) {
  if (const Status failure = tree.failure(); !failure.ok()) {
    pipeline->fail(failure);
    waiters->notify();
  }
}

}  // namespace vtkv
