// SPDX-License-Identifier: LGPL-2.1-or-later
// Crash explorer of the engine alone: random load, every kind of crash state, recovery, oracle; then a
// crash of the recovered database, inside its recovery or after it.
//
// VTKV_CRASH_STATES multiplies how many states are looked at (default 1).

#include <gtest/gtest.h>

#include <cstdlib>

#include "vtkv/testing/compressed_blocks.h"
#include "vtkv/testing/kv_crash_target.h"
#include "vtkv/testing/mutations.h"

namespace vtkv {
namespace {

// Of the histories that are explored; together they meet everything that KvLoadTest asks for.
constexpr uint64_t kSeeds = 16;

std::unique_ptr<CrashTarget> new_target(const CrashRun& run) {
  return std::make_unique<KvCrashTarget>(run, KvWorkloadSettings());
}

uint64_t budget_factor() {
  const char* text = std::getenv("VTKV_CRASH_STATES");
  return text ? std::max(1L, std::atol(text)) : 1;
}

class KvCrashTest : public testing::TestWithParam<SimProfile> {};

TEST_P(KvCrashTest, EveryAcknowledgedBatchSurvivesAndNoneIsHalf) {
  CrashExplorer explorer(new_target);
  const CrashLimits limits{.states = 300, .nested_every = 4, .nested_states = 12};
  for (uint64_t seed = 1; seed <= kSeeds * budget_factor(); ++seed) {
    const auto violation = explorer.explore({"vtkv", {}, GetParam(), seed, 24, seed % 2 == 0}, limits);
    ASSERT_FALSE(violation) << to_script(explorer.shrink(*violation, limits));
  }
  const CrashCounts& counts = explorer.counts();
  ASSERT_GT(counts.states, 0u);
  std::printf("%s: %lu crash states, %lu second crashes, %lu distinct, %.2f ms of processor time each\n",
              std::string(to_string(GetParam())).c_str(), counts.states, counts.nested, counts.distinct,
              counts.seconds * 1000 / static_cast<double>(counts.states + counts.nested));
  RecordProperty("crash_states", std::to_string(counts.states));
  RecordProperty("second_crashes", std::to_string(counts.nested));
  RecordProperty("distinct_states", std::to_string(counts.distinct));
}

INSTANTIATE_TEST_SUITE_P(, KvCrashTest,
                         testing::Values(SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(KvCrashTarget, DatabasesThatAreUpgradedHaveCompressedBlocks) {
  int compressed = 0;
  for (uint64_t seed = 4; seed < 8; ++seed) {
    SimEnv env({.seed = seed});
    EXPECT_EQ(KvCrashTarget({"vtkv", {}, SimProfile::ext4, seed, 24}, {}).record(&env), "");
    compressed += compressed_blocks(&env, "/db/tree");
  }
  EXPECT_GT(compressed, 0);
}

TEST_P(KvCrashTest, RelaxedBatchesAreLostInTheirOrder) {
  CrashExplorer explorer(
      [](const CrashRun& run) { return std::make_unique<KvCrashTarget>(run, KvWorkloadSettings{.relaxed = true}); });
  const CrashLimits limits{.states = 150, .nested_every = 4, .nested_states = 12};
  for (uint64_t seed = 1; seed <= kSeeds * budget_factor(); ++seed) {
    const auto violation = explorer.explore({"vtkv", {}, GetParam(), seed, 24, seed % 2 == 0}, limits);
    ASSERT_FALSE(violation) << to_script(explorer.shrink(*violation, limits));
  }
}

// Otherwise the crashes above would say nothing of the collector, of scans, the defragmenter and purges.
TEST(KvLoadTest, CollectsGarbageAndReshapesTheTree) {
  uint64_t moved = 0;
  uint64_t relocated = 0;
  uint64_t freed = 0;
  uint64_t defragmented = 0;
  uint64_t stitched = 0;
  uint64_t purges = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimEnv env({.seed = seed});
    ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
    KvWorkload workload(&env, {}, {});
    ASSERT_EQ(workload.open(0), "");
    workload.run(24, seed);
    const DBStatistics statistics = workload.database().statistics();
    moved += statistics.gc_moved_bytes;
    relocated += statistics.scan_moved_bytes;
    freed += statistics.gc_freed_segments;
    defragmented += statistics.defragmented_bytes;
    stitched += statistics.stitched_bytes;
    purges += statistics.purges;
  }
  EXPECT_GT(moved, 0u);
  EXPECT_GT(relocated, 0u);
  EXPECT_GT(freed, 0u);
  EXPECT_GT(defragmented, 0u);
  EXPECT_GT(stitched, 0u);
  EXPECT_GT(purges, 0u);
}

// Or of batches that are cut into fragments.
uint64_t steps_that_fill_a_segment(bool large_batches) {
  uint64_t large = 0;
  KvWorkloadSettings settings;
  settings.large_batches = large_batches;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimEnv env({.seed = seed});
    EXPECT_TRUE(KvWorkload::create(&env, settings).ok());
    KvWorkload workload(&env, settings, {});
    EXPECT_EQ(workload.open(0), "");
    for (uint64_t step = 0; step < 24; ++step) {
      const uint64_t before = workload.database().statistics().log_bytes;
      workload.run(1, seed * 100 + step);
      env.run_until_idle();
      large += workload.database().statistics().log_bytes - before > KvWorkloadSettings().log_segment_bytes ? 1 : 0;
    }
  }
  return large;
}

TEST(KvLoadTest, WritesBatchesLargerThanASegment) {
  EXPECT_GE(steps_that_fill_a_segment(true), steps_that_fill_a_segment(false) + 10);
}

// Or of log segments that are not primed.
TEST(KvLoadTest, WritesToUnprimedSegments) {
  uint32_t unprimed = 0;
  uint64_t primed_bytes = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimEnv env({.seed = seed});
    ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
    KvWorkload workload(&env, {}, {});
    ASSERT_EQ(workload.open(0), "");
    for (uint64_t step = 0; step < 24; ++step) {
      workload.run(1, seed * 100 + step);
      unprimed += workload.database().statistics().unprimed_log_segments;
    }
    primed_bytes += workload.database().statistics().primed_bytes;
  }
  EXPECT_GT(unprimed, 0u);
  EXPECT_GT(primed_bytes, 0u);
}

// A crash while a database is made leaves one that opens, or a directory where it can be made again.
TEST(KvCreateCrashTest, HalfMadeDatabaseIsMadeAgain) {
  SimEnv env({.profile = SimProfile::weakest});
  ASSERT_TRUE(KvWorkload::create(&env, {}).ok());
  CrashImages images(env.trace(), {.samples = 16});
  uint64_t half_made = 0;
  uint64_t whole = 0;
  const uint64_t budget = 600;
  for (uint64_t n = 0; n < budget; ++n) {
    const CrashState state = images.sample(n);
    auto crashed = images.materialize(state);
    KvWorkload workload(crashed.get(), {}, {});
    if (crashed->exists("/db/manifest")) {
      ++whole;
    } else {
      ++half_made;
      (void)crashed->remove_file("/slots");
      const Status status = KvWorkload::create(crashed.get(), {});
      ASSERT_TRUE(status.ok()) << status.to_string() << "\n  " << state.to_string();
    }
    ASSERT_EQ(workload.open(0), "") << state.to_string();
  }
  EXPECT_GT(half_made, 0u);
  EXPECT_GT(whole, 0u);
}

// Those of the engine, but for some that a test of their own notices: TreeWorkersMutationTest, TreeSnapshotsTest,
// ReadSegmentTest, CompactionJobMutationTest.
std::vector<Mutation> noticed_by_explorer() {
  std::vector<Mutation> noticed(mutations().begin(), mutations().end());
  std::erase_if(noticed, [](Mutation one) {
    return !is_of_engine(one) || one == Mutation::doubtful_run_freed || one == Mutation::snapshots_listed_early ||
           one == Mutation::read_segment_recycled || one == Mutation::step_leaves_newest_out ||
           one == Mutation::tombstone_dropped_above || one == Mutation::range_tombstone_not_cut;
  });
  return noticed;
}

// A rule broken on purpose must be noticed, or the explorer proves nothing.
class KvMutationTest : public testing::TestWithParam<Mutation> {};

TEST_P(KvMutationTest, IsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer(new_target);
  std::optional<CrashViolation> violation;
  for (uint64_t seed = 1; seed <= 400 && !violation; ++seed) {
    violation = explorer.explore({"vtkv", GetParam(), SimProfile::ext4, seed, 24},
                                 {.states = 300, .nested_every = 2, .nested_states = 24});
    if (violation && violation->what.starts_with("without any crash")) {
      violation.reset();  // the run never came to a crash: it shows nothing
    }
  }
  ASSERT_TRUE(violation) << explorer.counts().states << " states";
  std::printf("noticed after %lu states: %s\n", explorer.counts().states + explorer.counts().nested,
              violation->what.c_str());
}

INSTANTIATE_TEST_SUITE_P(, KvMutationTest, testing::ValuesIn(noticed_by_explorer()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace vtkv
