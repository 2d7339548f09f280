// SPDX-License-Identifier: LGPL-2.1-or-later
// A store gets more cubes, and a crash, or an I/O that fails, comes at any point of that: it mounts, with all that it
// had, and to ask again ends it.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "global/global_context.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/superblock.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/explored_seeds.h"
#include "swimstore/testing/growing_store.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/crash_explorer.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {
namespace {

using vtkv::CrashExplorer;
using vtkv::CrashRun;
using vtkv::Mutation;
using vtkv::SimCall;
using vtkv::SimEnv;
using vtkv::SimFault;
using vtkv::SimProfile;

constexpr unsigned kTo = 2;  // data cubes
constexpr unsigned kMore = 5;  // of another attempt, all
constexpr uint64_t kGrown = 1;  // the mark

unsigned cubes_of(SimEnv* env) {
  Superblock superblock;
  return Superblock::read(env, kCrashStore, &superblock).ok() ? superblock.cubes : 0;
}

std::string check_grown(SwimStore& store, SimEnv* env, const ModelState& expected) {
  unsigned had = 0;
  if (const vtkv::Status status = store.add_cubes(kTo, &had); !status.ok()) {
    return "add_cubes failed: " + status.to_string();
  }
  const std::string wrong = check_mount(store, expected);
  if (wrong.empty() && env->exists(std::string(kCrashStore) + "/add_cubes_unfinished")) {
    return "its mark is still there";
  }
  return wrong.empty() && cubes_of(env) != kTo + 1 ? "it has not the cubes that it was given" : wrong;
}

class GrowTarget final : public vtkv::CrashTarget {
 public:
  explicit GrowTarget(const CrashRun& run) : m_run(run) { use_small_stores(g_ceph_context); }

  std::string record(SimEnv* env) override {
    std::string wrong;
    const std::string failed = record_crash_store(g_ceph_context, env, [&](SwimStore& store) {
      fill_growing_store(store, m_run.seed);
      m_expected = read_store(store, &wrong);
      env->run_until_idle();
    });
    if (!failed.empty() || !wrong.empty()) {
      return failed + wrong;
    }
    env->run_until_idle();
    // Of every other run: an attempt to add more was killed.
    if (m_run.seed % 2 == 0 && !StoreDirectory(env, kCrashStore).claim_new_cubes(1, kMore).ok()) {
      return "the new cubes cannot be claimed";
    }
    env->restart_trace();
    const auto store = open_crash_store(g_ceph_context, env);
    unsigned had = 0;
    if (const vtkv::Status status = store->add_cubes(kTo, &had); !status.ok()) {
      return status.to_string();
    }
    env->mark(kGrown);
    return {};
  }

  // A second crash strikes the mount that goes on where this one came, or a second attempt.
  std::string check(SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t seed,
                    std::unique_ptr<vtkv::CrashTarget>* next) override {
    const auto store = open_crash_store(g_ceph_context, env);
    if ((m_is_grown || !marks.empty()) && cubes_of(env) != kTo + 1) {
      return "it has lost its new cubes";
    }
    if (next) {
      auto target = std::make_unique<GrowTarget>(m_run);
      target->m_expected = m_expected;
      target->m_is_grown = m_is_grown || !marks.empty();
      *next = std::move(target);
    }
    std::string wrong = seed % 2 == 0 ? check_mount(*store, m_expected) : "";
    wrong = wrong.empty() ? check_grown(*store, env, m_expected) : wrong;
    env->mark(kGrown);
    return wrong;
  }

 private:
  const CrashRun m_run;
  ModelState m_expected;
  bool m_is_grown = false;  // said so, before an earlier crash
};

CrashExplorer new_explorer() {
  return CrashExplorer([](const CrashRun& run) { return std::make_unique<GrowTarget>(run); });
}

class GrowCrashTest : public ::testing::Test {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context); }

  static void explore(uint64_t first_seed, SimProfile profile) {
    CrashExplorer explorer = new_explorer();
    expect_no_violation(explorer, {"grow", {}, profile, first_seed, 1}, 2,
                        {.states = 150, .nested_every = 15, .nested_states = 4});
  }
};

TEST_F(GrowCrashTest, NothingIsLostAndAskingAgainEndsIt) { explore(1, SimProfile::ext4); }
TEST_F(GrowCrashTest, AlsoWhereEachFileIsFlushedByItself) { explore(101, SimProfile::weakest); }

TEST_F(GrowCrashTest, ABrokenOrderIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  for (const Mutation mutation : {Mutation::cubes_added_before_made, Mutation::divided_before_copied}) {
    CrashExplorer explorer = new_explorer();
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 4 && !is_noticed; ++seed) {
      const auto violation =
          explorer.explore({"grow", mutation, SimProfile::ext4, seed, 1}, {.states = 200, .nested_every = 0});
      is_noticed = violation && !violation->what.starts_with("without any crash");
      if (violation) {
        std::printf("noticed after %lu states: %s\n", explorer.counts().states, violation->what.c_str());
      }
    }
    EXPECT_TRUE(is_noticed) << "no crash state told that the rule was broken";
  }
}

// ---- one I/O fails

constexpr uint64_t kRunsMax = 2000;

class GrowFaultTest : public ::testing::TestWithParam<SimFault> {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context); }
};

// The first eight calls one by one, then about every eighth of as many. Also when the power fails afterwards: what a
// failed sync should have covered is then taken for lost.
TEST_P(GrowFaultTest, NthFailureLosesNothing) {
  const SimFault& fault = GetParam();
  uint64_t n = 0, failed_runs = 0, told_unchanged = 0, told_grown = 0;
  for (bool reached = true; reached; n += 1 + n / 8) {
    ASSERT_LT(n, kRunsMax) << "it never ran clean";
    use_small_stores(g_ceph_context);
    SimEnv env({.seed = n + 1, .profile = n % 2 == 0 ? SimProfile::ext4 : SimProfile::weakest});
    ModelState expected;
    std::string wrong;
    ASSERT_EQ("", record_crash_store(g_ceph_context, &env, [&](SwimStore& store) {
                fill_growing_store(store, 1);
                expected = read_store(store, &wrong);
                env.run_until_idle();
              }));
    ASSERT_EQ("", wrong);
    env.run_until_idle();
    env.restart_trace();
    {
      SwimStore store(g_ceph_context, kCrashStore, &env);
      store.set_fatal_handler([](const vtkv::Status&) {});
      vtkv::NthFailure failure(&env, fault.call, n + 1, fault.persistent);
      unsigned had = 0;
      const vtkv::Status status = store.add_cubes(kTo, &had);
      reached = failure.end();
      failed_runs += !status.ok();
      ASSERT_TRUE(reached || status.ok()) << status.to_string();
      const bool says_unchanged = status.message().find("is as it was") != std::string::npos;
      const bool says_grown = status.ok() || status.message().find("has its new cubes, ") != std::string::npos;
      ASSERT_TRUE(!says_unchanged || cubes_of(&env) == 1) << status.to_string();
      ASSERT_TRUE(!says_grown || cubes_of(&env) == kTo + 1) << status.to_string();
      ASSERT_TRUE(says_grown || cubes_of(&env) == 1 || status.message().find("finds out") != std::string::npos)
          << status.to_string();
      told_unchanged += says_unchanged;
      told_grown += says_grown && !status.ok();
    }
    const auto check = [&](SwimStore& store, SimEnv* its_env) {
      const std::string wrong = check_mount(store, expected);
      return wrong.empty() ? check_grown(store, its_env, expected) : wrong;
    };
    ASSERT_EQ("", check_after_failure(&env, n + 1, check)) << fault.name << " " << n;
  }
  std::printf("%s: up to call %lu, %lu attempts failed, %lu said that nothing changed, %lu that it has the cubes\n",
              fault.name, n, failed_runs, told_unchanged, told_grown);
}

INSTANTIATE_TEST_SUITE_P(
    , GrowFaultTest,
    testing::ValuesIn(vtkv::sim_faults({{"create_directory_once", SimCall::create_directory, false},
                                        {"allocate_without_space", SimCall::allocate, true, ENOSPC}})),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace swimstore
