// Crash explorer of the engine alone: random load, every kind of crash state, recovery, oracle; then a
// crash of the recovered database, inside its recovery or after it.
//
// VTKV_CRASH_STATES multiplies how many states are looked at (default 1).

#include <gtest/gtest.h>

#include <cstdlib>

#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/kv_world.h"

namespace vtkv {
namespace {

struct Exploration {
  SimProfile profile = SimProfile::ext4;
  uint64_t seed = 1;
  KvWorldSettings settings;
  size_t batches = 24;
  uint64_t states = 300;         // at most, of the first crash
  uint64_t nested_every = 4;     // of these states, how many crash again
  uint64_t nested_states = 12;   // at most, of each second crash
  size_t nested_batches = 4;
};

class Explorer {
 public:
  explicit Explorer(const Exploration& plan) : m_plan(plan) {}

  // The first violation, or nothing.
  std::string run() {
    SimEnv env({.seed = m_plan.seed, .profile = m_plan.profile});
    if (const Status status = KvWorld::create(&env, m_plan.settings); !status.ok()) {
      return status.to_string();
    }
    env.restart_trace();
    KvWorld world(&env, m_plan.settings, {});
    if (const std::string text = world.open(0); !text.empty()) {
      return "first open: " + text;
    }
    world.run(m_plan.batches, m_plan.seed);
    const KvHistory history = world.history();
    world.close();
    CrashImages images(env.trace(), {.seed = m_plan.seed});
    return look_at(images, m_plan.states, history, 0, 0, true);
  }

  uint64_t states() const { return m_states; }
  uint64_t nested_states() const { return m_nested_states; }

 private:
  std::string look_at(CrashImages& images, uint64_t budget, const KvHistory& history, size_t at_least,
                      size_t at_most, bool outer) {
    const bool all = images.state_count() <= budget;
    for (uint64_t n = 0; all || n < budget; ++n) {
      CrashState state;
      if (all) {
        if (!images.next(&state)) {
          break;
        }
      } else {
        state = images.sample(m_plan.seed * 1'000'003 + n);
      }
      const std::string text = look_at_state(images, state, history, at_least, at_most, outer, n);
      if (!text.empty()) {
        return text + "\n  " + (outer ? "first" : "second") + " crash: " + state.to_string();
      }
    }
    return {};
  }

  std::string look_at_state(CrashImages& images, const CrashState& state, const KvHistory& history,
                            size_t at_least, size_t at_most, bool outer, uint64_t n) {
    ++(outer ? m_states : m_nested_states);
    promised(images.marks(state), &at_least, &at_most);
    auto env = images.materialize(state);
    KvWorld world(env.get(), m_plan.settings, history);
    if (const std::string text = world.open(at_least); !text.empty()) {
      return text;
    }
    const size_t found = world.history().size();
    if (found > at_most) {
      return "batch " + std::to_string(found) + " is there; only " + std::to_string(at_most) + " were submitted";
    }
    if (!outer || n % m_plan.nested_every != 0) {
      return {};
    }
    world.run(m_plan.nested_batches, m_plan.seed + n);
    const KvHistory nested_history = world.history();
    world.close();
    CrashImages nested(env->trace(), {.seed = n + 1});
    return look_at(nested, m_plan.nested_states, nested_history, at_least, found, false);
  }

  const Exploration m_plan;
  uint64_t m_states = 0;
  uint64_t m_nested_states = 0;
};

uint64_t budget_factor() {
  const char* text = std::getenv("VTKV_CRASH_STATES");
  return text ? std::max(1L, std::atol(text)) : 1;
}

class KvCrashTest : public testing::TestWithParam<SimProfile> {};

TEST_P(KvCrashTest, EveryAcknowledgedBatchSurvivesAndNoneIsHalf) {
  uint64_t states = 0;
  uint64_t nested = 0;
  const uint64_t seeds = 5 * budget_factor();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Explorer explorer({.profile = GetParam(), .seed = seed});
    const std::string violation = explorer.run();
    ASSERT_EQ(violation, "") << "seed " << seed;
    states += explorer.states();
    nested += explorer.nested_states();
  }
  std::printf("%s: %lu crash states, %lu second crashes\n", std::string(to_string(GetParam())).c_str(), states,
              nested);
  RecordProperty("crash_states", std::to_string(states));
  RecordProperty("second_crashes", std::to_string(nested));
}

INSTANTIATE_TEST_SUITE_P(, KvCrashTest,
                         testing::Values(SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// A crash while a database is made leaves one that opens, or a directory where it can be made again.
TEST(KvCreateCrashTest, HalfMadeDatabaseIsMadeAgain) {
  SimEnv env({.profile = SimProfile::weakest});
  ASSERT_TRUE(KvWorld::create(&env, {}).ok());
  CrashImages images(env.trace(), {.samples = 16});
  uint64_t half_made = 0;
  uint64_t whole = 0;
  const uint64_t budget = 600;
  for (uint64_t n = 0; n < budget; ++n) {
    const CrashState state = images.sample(n);
    auto crashed = images.materialize(state);
    KvWorld world(crashed.get(), {}, {});
    if (crashed->exists("/db/manifest")) {
      ++whole;
    } else {
      ++half_made;
      (void)crashed->remove_file("/slots");
      const Status status = KvWorld::create(crashed.get(), {});
      ASSERT_TRUE(status.ok()) << status.to_string() << "\n  " << state.to_string();
    }
    ASSERT_EQ(world.open(0), "") << state.to_string();
  }
  EXPECT_GT(half_made, 0u);
  EXPECT_GT(whole, 0u);
}

// A rule broken on purpose must be noticed, or the explorer proves nothing.
struct Mutation {
  const char* name;
  bool Options::Mutations::*rule;
  SimProfile profile = SimProfile::ext4;
};

class KvMutationTest : public testing::TestWithParam<Mutation> {};

TEST_P(KvMutationTest, IsNoticed) {
  std::string violation;
  uint64_t states = 0;
  for (uint64_t seed = 1; seed <= 60 && violation.empty(); ++seed) {
    Exploration plan{.profile = GetParam().profile, .seed = seed};
    plan.settings.mutations.*GetParam().rule = true;
    plan.nested_every = 2;
    plan.nested_states = 24;
    Explorer explorer(plan);
    violation = explorer.run();
    states += explorer.states() + explorer.nested_states();
  }
  EXPECT_NE(violation, "") << states << " states";
  std::printf("%s: noticed after %lu states: %s\n", GetParam().name, states, violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    , KvMutationTest,
    testing::Values(Mutation{"skip_flush", &Options::Mutations::skip_flush},
                    Mutation{"acknowledge_before_flush", &Options::Mutations::acknowledge_before_flush},
                    Mutation{"reuse_immediately", &Options::Mutations::reuse_immediately},
                    Mutation{"skip_body_crc", &Options::Mutations::skip_body_crc},
                    Mutation{"skip_external_check", &Options::Mutations::skip_external_check},
                    Mutation{"skip_recovery_record", &Options::Mutations::skip_recovery_record},
                    Mutation{"skip_previous_checksum", &Options::Mutations::skip_previous_checksum},
                    Mutation{"watermark_ahead_of_flush", &Options::Mutations::watermark_ahead_of_flush},
                    Mutation{"flush_memtable_early", &Options::Mutations::flush_memtable_early},
                    Mutation{"lose_range_deletes", &Options::Mutations::lose_range_deletes}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace vtkv
