// SPDX-License-Identifier: LGPL-2.1-or-later
// What tests of crash targets of their own share.
//
// Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "vtkv/testing/crash_explorer.h"

namespace swimstore {

// Explores `run`, and runs like it of the seeds that follow; a violation fails the test, as script.
inline void expect_no_violation(vtkv::CrashExplorer& explorer, vtkv::CrashRun run, unsigned seeds,
                                const vtkv::CrashLimits& limits) {
  for (const uint64_t end = run.seed + seeds; run.seed < end; ++run.seed) {
    const auto violation = explorer.explore(run, limits);
    ASSERT_FALSE(violation) << to_script(*violation);
  }
  const vtkv::CrashCounts& counts = explorer.counts();
  std::printf("%lu states, %lu nested, %lu distinct\n", counts.states, counts.nested, counts.distinct);
  EXPECT_GT(counts.states, 0u);
  EXPECT_GT(counts.nested, 0u);
}

}  // namespace swimstore
