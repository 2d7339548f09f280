// SPDX-License-Identifier: LGPL-2.1-or-later
// The crash explorer of one cube: after every crash that the trace of a run allows, the cube opens, holds a
// prefix of the history that contains every acknowledged transaction, and goes on working; and so again
// after a crash inside that.
//
// SWIM_CRASH_STATES: how many states each test explores (default 400); SWIM_CRASH_SEED: where it starts.

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "swimstore/testing/cube_crash_target.h"
#include "vtkv/testing/mutations.h"

namespace swimstore {
namespace {

using vtkv::CrashExplorer;
using vtkv::CrashRun;
using vtkv::Mutation;
using vtkv::SimProfile;

constexpr unsigned kTransactions = 120;
constexpr vtkv::CrashLimits kLimits{.states = 100, .nested_every = 4, .nested_states = 2};

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

CrashExplorer new_explorer(CubeEvents* events) {
  return CrashExplorer([events](const CrashRun& run) -> std::unique_ptr<vtkv::CrashTarget> {
    return std::make_unique<CubeCrashTarget>(run, CubeCrashTarget::options_for(run.profile), events);
  });
}

class CubeCrash : public testing::TestWithParam<SimProfile> {};

TEST_P(CubeCrash, EveryCrashLeavesAPrefixWithAllThatWasAcknowledged) {
  const uint64_t budget = number_from_environment("SWIM_CRASH_STATES", 400);
  CubeEvents events;
  CrashExplorer explorer = new_explorer(&events);
  const uint64_t first = number_from_environment("SWIM_CRASH_SEED", 1);
  // Until a run met its bad slot, too: not every one does.
  for (uint64_t seed = first; explorer.counts().states < budget || (events.quarantined == 0 && seed < first + 120);
       seed++) {
    const bool interleaved = seed / 2 % 2 == 1;
    const auto violation = explorer.explore({"cube", {}, GetParam(), seed, kTransactions, interleaved}, kLimits);
    ASSERT_FALSE(violation) << to_script(*violation);
  }
  std::printf("%s: %" PRIu64 " states, %" PRIu64 " nested, %" PRIu64 " distinct; %" PRIu64 " flushes, %" PRIu64
              " bytes punched, %" PRIu64 " of them fragments, %" PRIu64 " primed, %" PRIu64
              " transactions refused for space\n",
              std::string(vtkv::to_string(GetParam())).c_str(), explorer.counts().states, explorer.counts().nested,
              explorer.counts().distinct, events.flushes, events.punched_bytes, events.punched_fragments_bytes,
              events.primed_bytes, events.refused);
  EXPECT_GT(events.flushes, 0u);
  EXPECT_GT(events.punched_bytes, 0u);
  EXPECT_GT(events.punched_fragments_bytes, 0u);
  EXPECT_GT(events.refused, 0u);
  EXPECT_GT(events.quarantined, 0u);
}

INSTANTIATE_TEST_SUITE_P(Profiles, CubeCrash,
                         testing::Values(SimProfile::ext4, SimProfile::xfs, SimProfile::btrfs, SimProfile::weakest),
                         [](const auto& info) { return std::string(vtkv::to_string(info.param)); });

// The explorer is worth what it notices. Each rule broken on purpose must be seen. (Range deletes, which a cube's
// own transactions do not make, and the structure of the log are looked at in vtkv's own test.)
class CubeCrashNotices : public testing::TestWithParam<Mutation> {};

TEST_P(CubeCrashNotices, TheBrokenRule) {
  VTKV_NEEDS_MUTATIONS();
  const Mutation mutation = GetParam();
  const SimProfile profile = mutation == Mutation::single_flush_everywhere ? SimProfile::weakest : SimProfile::ext4;
  // It hands out a slot for which the host has no space, long before a crash could find data lost.
  const bool shows_at_once = mutation == Mutation::failed_punch_trusted;
  CrashExplorer explorer = new_explorer(nullptr);
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const auto violation = explorer.explore({"cube", mutation, profile, seed, kTransactions}, kLimits);
    if (violation && (shows_at_once || !violation->what.starts_with("without any crash"))) {
      std::printf("noticed after %" PRIu64 " states: %s\n", explorer.counts().states, violation->what.c_str());
      return;
    }
  }
  FAIL() << "nothing told that the rule was broken";
}

INSTANTIATE_TEST_SUITE_P(Rules, CubeCrashNotices,
                         testing::Values(Mutation::slot_reused_at_once, Mutation::slot_punched_early,
                                         Mutation::fragment_punched_early, Mutation::failed_punch_trusted,
                                         Mutation::damage_mark_kept, Mutation::quarantine_forgotten,
                                         Mutation::flush_removed, Mutation::acknowledged_before_flush,
                                         Mutation::data_crc_not_checked, Mutation::single_flush_everywhere),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace swimstore
