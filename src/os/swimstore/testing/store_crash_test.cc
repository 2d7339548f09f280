#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/testing/store_explorer.h"

namespace swimstore {

namespace {

ExplorerResult explore(uint64_t seed, vtkv::SimProfile profile, const WorkloadOptions& workload = {}) {
  ExplorerOptions options;
  options.seed = seed;
  options.profile = profile;
  options.workload = workload;
  ExplorerResult result = StoreExplorer(g_ceph_context, options).run();
  std::cout << result.cuts << " cuts, " << result.states << " states, " << result.nested_states
            << " of them nested\n";
  EXPECT_GT(result.states, 0u);
  for (const std::string& failure : result.failures) {
    ADD_FAILURE() << failure;
  }
  return result;
}

// Enough states for each rule's breach to show.
size_t failures_with(const std::function<void(CubeOptions&)>& mutate) {
  ExplorerOptions options;
  options.seed = 6;
  options.transactions = 40;
  options.states_max = 300;
  options.nested_every = SIZE_MAX;
  options.mutate = mutate;
  return StoreExplorer(g_ceph_context, options).run().failures.size();
}

}  // namespace

TEST(StoreCrashTest, EveryStateRecoversOnExt4) { explore(1, vtkv::SimProfile::ext4); }
TEST(StoreCrashTest, EveryStateRecoversOnXfs) { explore(2, vtkv::SimProfile::xfs); }
TEST(StoreCrashTest, EveryStateRecoversOnBtrfs) { explore(3, vtkv::SimProfile::btrfs); }
TEST(StoreCrashTest, EveryStateRecoversOnTheWeakestHost) { explore(4, vtkv::SimProfile::weakest); }

TEST(StoreCrashTest, SmallObjectsThatLieInOneChunk) {
  explore(5, vtkv::SimProfile::ext4, {.objects = 3, .object_bytes_max = 40000});
}

// The explorer's own test: a store that breaks a rule is found out.

TEST(StoreCrashTest, WithoutFlushesAcknowledgedWorkIsLost) {
  EXPECT_GT(failures_with([](CubeOptions& options) { options.database.mutations.skip_flush = true; }), 0u);
}

TEST(StoreCrashTest, LargeObjectsWhoseSlotsAreSoonReused) {
  explore(6, vtkv::SimProfile::ext4, {.objects = 2, .object_bytes_max = 4u << 20});
}

}  // namespace swimstore
