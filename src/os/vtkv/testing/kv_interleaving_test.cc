// SPDX-License-Identifier: LGPL-2.1-or-later
// The engine under random load, its workers coming between one another's instructions. Nothing fails and nothing
// crashes: through every snapshot and iterator, and at the end, the database holds what the model says.
//
// VTKV_CRASH_STATES multiplies how many histories are looked at (default 1).

#include <gtest/gtest.h>

#include <cstdlib>

#include "vtkv/testing/kv_workload.h"

namespace vtkv {
namespace {

constexpr size_t kBatches = 60;

std::string run_one(uint64_t seed, const KvWorkloadSettings& settings) {
  SimEnv env({.seed = seed, .record = false, .interleaved = true});
  if (const Status status = KvWorkload::create(&env, settings); !status.ok()) {
    return status.to_string();
  }
  KvWorkload workload(&env, settings, {});
  if (std::string text = workload.open(0); !text.empty()) {
    return text;
  }
  workload.run(kBatches, seed);
  workload.settle();
  return workload.wrong();
}

uint64_t histories() {
  const char* text = std::getenv("VTKV_CRASH_STATES");
  return 150 * (text ? std::max(1L, std::atol(text)) : 1);
}

TEST(KvInterleavingTest, EveryReaderSeesWhatWasThere) {
  for (uint64_t seed = 1; seed <= histories(); ++seed) {
    ASSERT_EQ(run_one(seed, {.holds_iterators = seed % 2 == 0}), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace vtkv
