// The crash explorer of one cube: after every crash that the trace of a run allows, the cube opens, holds a
// prefix of the history that contains every acknowledged transaction, and goes on working; and so again
// after a crash inside that.
//
// SWIM_CRASH_STATES: how many states each test explores (default 400); SWIM_CRASH_SEED: where it starts.

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "swimstore/testing/cube_world.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::CrashImages;
using vtkv::CrashState;
using vtkv::SimEnv;
using vtkv::SimProfile;

constexpr uint64_t kHostBytes = 64 << 20;

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// What a run went through: an explorer of runs in which nothing happens finds nothing.
struct Events {
  uint64_t flushes = 0, punched_bytes = 0, primed_bytes = 0, refused = 0;
  Events& operator+=(const Events& other) {
    flushes += other.flushes;
    punched_bytes += other.punched_bytes;
    primed_bytes += other.primed_bytes;
    refused += other.refused;
    return *this;
  }
};

struct Run {
  History history;
  Events events;
  std::unique_ptr<CrashImages> images;
  CubeOptions options;
};

struct Exploration {
  uint64_t states = 0, nested = 0;
  Events events;
  std::string violation;  // the first one
};

// Somebody else's file takes all but this much of the host.
void leave_free(SimEnv& env, uint64_t bytes) {
  std::unique_ptr<vtkv::File> file;
  EXPECT_TRUE(env.open_file("/somebody_else", {.create = true}, &file).ok());
  EXPECT_TRUE(file->allocate(0, kHostBytes - env.allocated_bytes() - bytes).ok());
}

// `mutate` breaks the options on purpose.
template <class Mutate>
Run record_run(SimProfile profile, uint64_t seed, unsigned transactions, Mutate mutate) {
  Run run;
  run.options = CubeWorld::small_options(profile == SimProfile::ext4 || profile == SimProfile::xfs);
  mutate(run.options);
  SimEnv env({.seed = seed, .profile = profile, .capacity_bytes = kHostBytes});
  EXPECT_EQ(CubeWorld::create(env, run.options), "");
  leave_free(env, seed % 3 == 0 ? 2 << 20 : 560 << 10);
  CubeWorld world;
  EXPECT_EQ(world.open(env, run.options), "");
  env.run_until_idle();
  world.run(run.history, seed, transactions / 2, 1 + seed % 4);
  EXPECT_EQ(world.wait_for_all(), "");
  env.run_until_idle();
  env.restart_trace();  // the second half is explored, on a cube that has reused and flushed already
  const uint64_t before = run.history.states.size() - 1;
  env.mark(before);
  world.run(run.history, seed + 1, transactions - transactions / 2, 1 + seed % 4);
  run.images = std::make_unique<CrashImages>(env.trace(), vtkv::CrashOptions{.seed = seed});
  EXPECT_EQ(world.wait_for_all(), "");
  uint64_t found = 0;
  EXPECT_EQ(world.check(run.history, &found), "");
  EXPECT_EQ(found, run.history.states.size() - 1);
  const ContainerStatistics containers = world.cube().containers().statistics();
  run.events = {world.cube().database().statistics().memtable_flushes, containers.punched_bytes_total,
                containers.primed_bytes_total, run.history.refused};
  return run;
}

// Opens what the crash left; `acknowledged` is the last transaction known to be durable.
std::string check_state(CrashImages& images, const CrashState& state, History history, uint64_t acknowledged,
                        const CubeOptions& options, uint64_t seed, unsigned depth, Exploration* exploration) {
  for (const vtkv::SimMark& mark : images.marks(state)) {
    acknowledged = std::max(acknowledged, mark.id);
  }
  std::unique_ptr<SimEnv> env = images.materialize(state);
  std::unique_ptr<CrashImages> nested;
  {
    CubeWorld world;
    if (std::string wrong = world.open(*env, options); !wrong.empty()) {
      return wrong;
    }
    uint64_t found = 0;
    if (std::string wrong = world.check(history, &found); !wrong.empty()) {
      return wrong;
    }
    if (found < acknowledged) {
      return "acknowledged " + std::to_string(acknowledged) + ", found " + std::to_string(found);
    }
    // Life goes on: whatever was lost is written over.
    history.states.resize(found + 1);
    env->mark(found);
    world.run(history, seed, 6, 2);
    if (depth > 0) {
      nested = std::make_unique<CrashImages>(env->trace(), vtkv::CrashOptions{.seed = seed});
    }
    if (std::string wrong = world.wait_for_all(); !wrong.empty()) {
      return wrong;
    }
    if (std::string wrong = world.check(history, &found); !wrong.empty()) {
      return "afterwards: " + wrong;
    }
  }
  for (unsigned i = 0; nested && i < 2; i++) {
    const CrashState inner = nested->sample(seed * 31 + i);
    exploration->nested++;
    // Of the outer crash only what was acknowledged before it is promised, until recovery has completed.
    std::string wrong =
        check_state(*nested, inner, history, acknowledged, options, seed + i, depth - 1, exploration);
    if (!wrong.empty()) {
      return "in a second crash, " + inner.to_string() + ": " + wrong;
    }
  }
  return "";
}

template <class Mutate>
Exploration explore(SimProfile profile, uint64_t seed, unsigned transactions, uint64_t states, Mutate mutate) {
  Run run = record_run(profile, seed, transactions, mutate);
  Exploration exploration;
  exploration.events = run.events;
  for (uint64_t i = 0; i < states && exploration.violation.empty(); i++) {
    const CrashState state = run.images->sample(seed * 1000003 + i);
    exploration.states++;
    std::string wrong = check_state(*run.images, state, run.history, 0, run.options, seed + i, i % 4 == 0 ? 1 : 0,
                                    &exploration);
    if (!wrong.empty()) {
      exploration.violation = "seed " + std::to_string(seed) + ", " + state.to_string() + ": " + wrong;
    }
  }
  return exploration;
}

class CubeCrash : public testing::TestWithParam<SimProfile> {};

TEST_P(CubeCrash, EveryCrashLeavesAPrefixWithAllThatWasAcknowledged) {
  const uint64_t budget = number_from_environment("SWIM_CRASH_STATES", 400);
  const uint64_t first_seed = number_from_environment("SWIM_CRASH_SEED", 1);
  Exploration total;
  for (uint64_t seed = first_seed; total.states < budget; seed++) {
    const Exploration one = explore(GetParam(), seed, 120, std::min<uint64_t>(100, budget - total.states),
                                    [](CubeOptions&) {});
    ASSERT_EQ(one.violation, "");
    total.states += one.states;
    total.nested += one.nested;
    total.events += one.events;
  }
  std::printf("%s: %" PRIu64 " states, %" PRIu64 " nested; %" PRIu64 " flushes, %" PRIu64 " bytes punched, %" PRIu64
              " primed, %" PRIu64 " transactions refused for space\n",
              std::string(vtkv::to_string(GetParam())).c_str(), total.states, total.nested, total.events.flushes,
              total.events.punched_bytes, total.events.primed_bytes, total.events.refused);
  EXPECT_GT(total.events.flushes, 0u);
  EXPECT_GT(total.events.punched_bytes, 0u);
  EXPECT_GT(total.events.refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Profiles, CubeCrash,
                         testing::Values(SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest),
                         [](const auto& info) { return std::string(vtkv::to_string(info.param)); });

// The explorer is worth what it notices. Each rule broken on purpose must be seen.
struct BrokenRule {
  const char* name;
  SimProfile profile;
  void (*mutate)(CubeOptions&);
};

class CubeCrashNotices : public testing::TestWithParam<BrokenRule> {};

TEST_P(CubeCrashNotices, TheBrokenRule) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const Exploration one = explore(GetParam().profile, seed, 120, 100, GetParam().mutate);
    if (!one.violation.empty()) {
      std::printf("noticed: %s\n", one.violation.c_str());
      return;
    }
  }
  FAIL() << "no crash state told that the rule was broken";
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CubeCrashNotices,
    testing::Values(BrokenRule{"reuse_at_once", SimProfile::ext4,
                               [](CubeOptions& options) { options.containers.skip_reuse_horizon = true; }},
                    BrokenRule{"punched_while_a_page_says_primed", SimProfile::ext4,
                               [](CubeOptions& options) { options.containers.punch_at_once = true; }},
                    BrokenRule{"no_flush", SimProfile::ext4,
                               [](CubeOptions& options) { options.database.mutations.skip_flush = true; }},
                    BrokenRule{"acknowledged_before_the_flush", SimProfile::ext4,
                               [](CubeOptions& options) {
                                 options.database.mutations.acknowledge_before_flush = true;
                               }},
                    BrokenRule{"data_not_checked", SimProfile::ext4,
                               [](CubeOptions& options) { options.database.mutations.skip_external_check = true; }},
                    BrokenRule{"one_flush_where_it_is_not_enough", SimProfile::weakest,
                               [](CubeOptions& options) { options.database.single_flush = true; }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace swimstore
