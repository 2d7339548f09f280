// SPDX-License-Identifier: LGPL-2.1-or-later
// One I/O of a store's life fails, be it the n-th read, write, sync, …, for n = 1, 2, … until the script runs clean:
// nothing acknowledged is lost, no wrong byte is read, nothing aborts. Not even when the power fails afterwards: what
// a failed sync should have covered is then taken for lost.

#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/testing/store_script.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {

namespace {

using vtkv::SimCall;
using vtkv::SimEnv;
using vtkv::SimFault;
using vtkv::SimProfile;

constexpr uint64_t kRunsMax = 2000;

// Of what a loss of power leaves at the end: nothing in doubt, all of it, and some of what lies between.
std::string check_crashes(const SimEnv& env, const StoreHistory& history, uint64_t seed) {
  vtkv::CrashImages images(env.trace(), {.seed = seed});
  const size_t end = images.cut_count() - 1;
  const uint64_t count = images.state_count(end);
  for (const uint64_t number : {uint64_t{0}, count - 1, seed % count, seed * 31 % count}) {
    const vtkv::CrashState state = images.state(end, number);
    const auto crashed = images.materialize(state);
    if (std::string wrong = StoreScript::check(g_ceph_context, crashed.get(), history); !wrong.empty()) {
      return wrong + ", after a loss of power: " + state.to_string();
    }
  }
  return {};
}

class StoreFaultTest : public testing::TestWithParam<SimFault> {
 protected:
  // The first call of this kind, the second, and so on; of a script that moves a collection, from when that begins.
  // *failed: how many there were.
  static void fail_each(const SimFault& fault, bool of_a_move, uint64_t* failed);
};

void StoreFaultTest::fail_each(const SimFault& fault, bool of_a_move, uint64_t* failed) {
  uint64_t n = 0;
  for (bool reached = true; reached;) {
    ASSERT_LT(++n, kRunsMax) << "the script never ran clean";
    SimEnv env({.seed = n, .profile = n % 2 == 0 ? SimProfile::ext4 : SimProfile::weakest});
    ASSERT_TRUE(env.create_directory(StoreScript::kPath).ok());
    ASSERT_TRUE(env.sync_directory("/").ok());
    std::optional<vtkv::NthFailure> failure;
    const auto begin = [&] { failure.emplace(&env, fault.call, n, fault.persistent); };
    StoreScript script(g_ceph_context, &env, n, of_a_move ? begin : std::function<void()>());
    if (!of_a_move) {
      begin();
    }
    const std::string wrong = script.run();
    ASSERT_TRUE(failure);
    StoreHistory history = script.history();
    history.may_have_lost_blocks = fault.call == SimCall::read;
    reached = failure->end();
    ASSERT_EQ(wrong, "") << fault.name << " " << n;
    ASSERT_EQ(check_crashes(env, history, n), "") << fault.name << " " << n;
    ASSERT_EQ(StoreScript::check(g_ceph_context, &env, history), "") << fault.name << " " << n;
  }
  *failed = n - 1;
  std::printf("%s: %lu calls failed, one after the other\n", fault.name, *failed);
}

TEST_P(StoreFaultTest, NthFailureLosesNothing) {
  uint64_t failed = 0;
  ASSERT_NO_FATAL_FAILURE(fail_each(GetParam(), false, &failed));
  EXPECT_GT(failed, 0u) << "nothing failed";
}

TEST_P(StoreFaultTest, NthFailureOfAMoveLosesNothing) {
  uint64_t failed = 0;
  ASSERT_NO_FATAL_FAILURE(fail_each(GetParam(), true, &failed));
}

INSTANTIATE_TEST_SUITE_P(
    , StoreFaultTest,
    testing::ValuesIn(vtkv::sim_faults({{"create_directory_once", SimCall::create_directory, false},
                                        {"file_system_info_once", SimCall::file_system_info, false},
                                        {"file_system_info_always", SimCall::file_system_info, true}})),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace swimstore
