// SPDX-License-Identifier: LGPL-2.1-or-later
// Log and tree move to another file system, or back, and a crash, or an I/O that fails, comes at any point of that: the
// store mounts, with all that it had, and to ask again ends it.

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/directory/store_directory.h"
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

constexpr uint64_t kMoved = 1;  // the mark

struct Route {
  std::string from, to;
};

Route route_of(uint64_t seed) {
  const std::string first = kCrashMetadata, second = std::string(vtkv::kSimOtherFileSystem) + "/second";
  return seed % 3 == 0 ? Route{first, ""} : seed % 3 == 1 ? Route{"", first} : Route{first, second};
}

std::string place_of(SimEnv* env) {
  StoreDirectory directory(env, kCrashStore);
  Superblock superblock;
  return directory.read_superblock(&superblock).ok() ? directory.metadata_directory() : "nowhere";
}

// Nothing of it is left where it is not used.
std::string check_left(const SimEnv& env, const Route& route) {
  const std::string cubes = std::string(kCrashStore) + "/cubes/";
  for (const std::string& file : env.files()) {
    const bool in_cubes = file.starts_with(cubes) && file.find("/containers/") == std::string::npos;
    const bool is_there = !route.from.empty() && file.starts_with(route.from + "/");
    const bool may_stay = file == route.from + "/" + StoreDirectory::kOwner ||  // it goes behind the mark
                          file == route.from + "/" + StoreDirectory::kLock;
    if ((in_cubes && !route.to.empty()) || (is_there && !may_stay)) {
      return file + " is left";
    }
  }
  return "";
}

std::string check_moved(SwimStore& store, SimEnv* env, const Route& route, const ModelState& expected) {
  uint64_t bytes = 0;
  if (const vtkv::Status status = store.move_metadata(route.to, &bytes); !status.ok()) {
    return "move_metadata failed: " + status.to_string();
  }
  std::string wrong = check_mount(store, expected);
  if (wrong.empty() && env->exists(std::string(kCrashStore) + "/move_metadata_unfinished")) {
    wrong = "its mark is still there";
  }
  if (wrong.empty() && place_of(env) != route.to) {
    wrong = "they are not where they were moved to";
  }
  return wrong.empty() ? check_left(*env, route) : wrong;
}

// Makes a store there and fills it.
std::string record_filled(SimEnv* env, const Route& route, uint64_t seed, ModelState* expected) {
  use_small_stores(g_ceph_context, {{"swimstore_metadata_path", route.from.c_str()},
                                    {"swimstore_cubes", seed / 3 % 2 == 0 ? "1" : "2"}});
  std::string wrong;
  const std::string failed = record_crash_store(g_ceph_context, env, [&](SwimStore& store) {
    fill_growing_store(store, seed);
    *expected = read_store(store, &wrong);
    env->run_until_idle();
  });
  env->run_until_idle();
  return failed + wrong;
}

class MoveTarget final : public vtkv::CrashTarget {
 public:
  explicit MoveTarget(const CrashRun& run) : m_run(run), m_route(route_of(run.seed)) {}

  std::string record(SimEnv* env) override {
    const std::string failed = record_filled(env, m_route, m_run.seed, &m_expected);
    if (!failed.empty()) {
      return failed;
    }
    env->restart_trace();
    const auto store = open_crash_store(g_ceph_context, env);
    uint64_t bytes = 0;
    if (const vtkv::Status status = store->move_metadata(m_route.to, &bytes); !status.ok()) {
      return status.to_string();
    }
    env->mark(kMoved);
    return {};
  }

  // A second crash strikes the mount, or the second attempt.
  std::string check(SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t seed,
                    std::unique_ptr<vtkv::CrashTarget>* next) override {
    const auto store = open_crash_store(g_ceph_context, env);
    const bool has_moved = m_has_moved || !marks.empty();
    if (has_moved && place_of(env) != m_route.to) {
      return "they are back";
    }
    if (next) {
      auto target = std::make_unique<MoveTarget>(m_run);
      target->m_expected = m_expected;
      target->m_has_moved = has_moved;
      *next = std::move(target);
    }
    std::string wrong = seed % 2 == 0 ? check_mount(*store, m_expected) : "";
    wrong = wrong.empty() ? check_moved(*store, env, m_route, m_expected) : wrong;
    env->mark(kMoved);
    return wrong;
  }

 private:
  const CrashRun m_run;
  const Route m_route;
  ModelState m_expected;
  bool m_has_moved = false;  // said so, before an earlier crash
};

CrashExplorer new_explorer() {
  return CrashExplorer([](const CrashRun& run) { return std::make_unique<MoveTarget>(run); });
}

class MetadataMoveCrashTest : public ::testing::Test {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context); }

  static void explore(uint64_t first_seed, SimProfile profile) {
    CrashExplorer explorer = new_explorer();
    expect_no_violation(explorer, {"move", {}, profile, first_seed, 1}, 4,
                        {.states = 100, .nested_every = 15, .nested_states = 4});
  }
};

}  // namespace

TEST_F(MetadataMoveCrashTest, NothingIsLostAndAskingAgainEndsIt) { explore(1, SimProfile::ext4); }
TEST_F(MetadataMoveCrashTest, AlsoWhereEachFileIsFlushedByItself) { explore(101, SimProfile::weakest); }

TEST_F(MetadataMoveCrashTest, ABrokenOrderIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer = new_explorer();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto violation = explorer.explore({"move", Mutation::metadata_used_before_copied, SimProfile::ext4, seed, 1},
                                            {.states = 100, .nested_every = 0});
    EXPECT_TRUE(violation && !violation->what.starts_with("without any crash"))
        << "no crash state told that the rule was broken, seed " << seed;
    if (violation) {
      std::printf("noticed after %lu states: %s\n", explorer.counts().states, violation->what.c_str());
    }
  }
}

// ---- one I/O fails

namespace {

class MetadataMoveFaultTest : public ::testing::TestWithParam<SimFault> {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context); }
  void fail_each(const Route& route);
};

// In steps that grow by a quarter. Also when the power fails afterwards.
void MetadataMoveFaultTest::fail_each(const Route& route) {
  const SimFault& fault = GetParam();
  uint64_t n = 0, failed_runs = 0;
  for (bool reached = true; reached; n += 1 + n / 4) {
    ASSERT_LT(n, 5000u) << "it never ran clean";
    SimEnv env({.seed = n + 1, .profile = n % 2 == 0 ? SimProfile::ext4 : SimProfile::weakest});
    ModelState expected;
    ASSERT_EQ("", record_filled(&env, route, n, &expected));
    env.restart_trace();
    {
      SwimStore store(g_ceph_context, kCrashStore, &env);
      store.set_fatal_handler([](const vtkv::Status&) {});
      vtkv::NthFailure failure(&env, fault.call, n + 1, fault.persistent);
      uint64_t bytes = 0;
      const vtkv::Status status = store.move_metadata(route.to, &bytes);
      reached = failure.end();
      failed_runs += !status.ok();
      ASSERT_TRUE(reached || status.ok()) << status.to_string();
      const bool says_unmoved = status.message().find("are where they were") != std::string::npos;
      ASSERT_TRUE(!says_unmoved || place_of(&env) == route.from) << status.to_string();
      ASSERT_TRUE(!status.ok() || place_of(&env) == route.to);
    }
    const auto check = [&](SwimStore& store, SimEnv* its_env) {
      const std::string wrong = check_mount(store, expected);
      return wrong.empty() ? check_moved(store, its_env, route, expected) : wrong;
    };
    ASSERT_EQ("", check_after_failure(&env, n + 1, check)) << fault.name << " " << n;
  }
  std::printf("%s, from '%s' to '%s': up to call %lu, %lu attempts failed\n", fault.name, route.from.c_str(),
              route.to.c_str(), n, failed_runs);
}

}  // namespace

TEST_P(MetadataMoveFaultTest, NthFailureLosesNothing) {
  for (const uint64_t route : {0, 1, 2}) {
    fail_each(route_of(route));
  }
}

INSTANTIATE_TEST_SUITE_P(, MetadataMoveFaultTest,
                         testing::ValuesIn(vtkv::sim_faults({{"create_directory_once", SimCall::create_directory,
                                                              false},
                                                             {"write_without_space", SimCall::write, true, ENOSPC}})),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace swimstore
