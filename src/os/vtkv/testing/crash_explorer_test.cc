// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/crash_explorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vtkv/testing/image_hash.h"
#include "vtkv/testing/kv_crash_target.h"
#include "vtkv/testing/mutations.h"

namespace vtkv {
namespace {

std::unique_ptr<CrashTarget> new_target(const CrashRun& run) {
  return std::make_unique<KvCrashTarget>(run, KvWorkloadSettings());
}

constexpr CrashLimits kLimits{.states = 300, .nested_every = 2, .nested_states = 12};

CrashViolation some_violation(CrashExplorer& explorer, Mutation mutation) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    if (auto violation = explorer.explore({"vtkv", mutation, SimProfile::ext4, seed, 24}, kLimits)) {
      return *violation;
    }
  }
  ADD_FAILURE() << to_string(mutation) << " was not noticed";
  return {};
}

TEST(CrashExplorerTest, AScriptShowsTheSameViolationAgain) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer(new_target);
  const CrashViolation found = some_violation(explorer, Mutation::flush_removed);
  CrashViolation parsed;
  ASSERT_TRUE(parse_script(to_script(found), &parsed).ok()) << to_script(found);
  EXPECT_EQ(explorer.replay(parsed), found.what);
}

TEST(CrashExplorerTest, AScriptOfASecondCrashShowsItAgain) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer(new_target);
  CrashViolation found;
  for (uint64_t seed = 1; seed <= 400 && !found.second; ++seed) {
    if (auto violation =
            explorer.explore({"vtkv", Mutation::no_recovery_record, SimProfile::ext4, seed, 24}, kLimits)) {
      found = *violation;
    }
  }
  ASSERT_TRUE(found.second);
  CrashViolation parsed;
  ASSERT_TRUE(parse_script(to_script(found), &parsed).ok()) << to_script(found);
  EXPECT_EQ(explorer.replay(parsed), found.what);
}

TEST(CrashExplorerTest, ASmallerScriptStillShowsAViolation) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer(new_target);
  const CrashViolation found = some_violation(explorer, Mutation::flush_removed);
  const CrashViolation smaller = explorer.shrink(found, kLimits);
  EXPECT_LE(smaller.run.steps, found.run.steps);
  EXPECT_EQ(explorer.replay(smaller), smaller.what);
  EXPECT_NE(smaller.what, "");
  // What does not matter has landed; something that matters has not.
  SCOPED_TRACE(to_script(smaller));
  EXPECT_TRUE(std::any_of(smaller.story.begin(), smaller.story.end(),
                          [](const std::string& line) { return !line.starts_with("landed"); }));
}

TEST(CrashExplorerTest, AScriptThatIsNotOneIsRefusedByItsLine) {
  CrashViolation violation;
  EXPECT_EQ(parse_script("stack vtkv\nseed many\n", &violation).message(),
            "line 2 of the script is not understood: seed many");
  EXPECT_FALSE(parse_script("", &violation).ok());
  EXPECT_FALSE(parse_script("stack vtkv\ntorn 1 0 01\n", &violation).ok());
}

TEST(ImageHashTest, DiffersWhereOneByteDoes) {
  SimEnv env;
  std::unique_ptr<File> file;
  ASSERT_TRUE(env.open_file("/f", {.create = true}, &file).ok());
  ASSERT_TRUE(file->write_zeros(0, 8192).ok());
  file.reset();
  env.restart_trace();
  ImageHash hash;
  const uint64_t before = hash.of(env.trace().base);
  env.flip_bits("/f", 5000, 1);
  EXPECT_NE(hash.of(env.trace().base), before);
  env.flip_bits("/f", 5000, 1);
  EXPECT_EQ(hash.of(env.trace().base), before);
  ASSERT_TRUE(env.rename_file("/f", "/g").ok());
  env.restart_trace();
  EXPECT_NE(hash.of(env.trace().base), before);
}

}  // namespace
}  // namespace vtkv
