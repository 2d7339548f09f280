// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/fast_commit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace vtkv {
namespace {

TEST(FastCommit, IsShownByOneOption) {
  EXPECT_TRUE(shows_fast_commit("rw\nnoquota\nfc_debug_force\nresuid=0\n"));
  EXPECT_FALSE(shows_fast_commit("rw\nnoquota\nresuid=0\nfc_debug_max_replay=3\n"));
  EXPECT_FALSE(shows_fast_commit(""));
}

TEST(FastCommit, IsCountedWhenMade) {
  const std::string rest = "0 numblks\n0us avg_commit_time\nIneligible reasons:\n\"Resize\":\t3\n";
  EXPECT_FALSE(counts_fast_commits("fc stats:\n0 commits\n0 ineligible\n" + rest));
  EXPECT_TRUE(counts_fast_commits("fc stats:\n12 commits\n0 ineligible\n" + rest));
  EXPECT_FALSE(counts_fast_commits("fc stats:\n0 commits\n1 ineligible\n" + rest));
  EXPECT_FALSE(counts_fast_commits("fc stats:\n"));
  EXPECT_FALSE(counts_fast_commits(""));
}

TEST(FastCommit, OfAFileThatIsNotThereNothingIsTold) { EXPECT_EQ(find_fast_commit("/nowhere/at/all"), ""); }

// qa/standalone/real-fs.py makes the folders, one on each kind of ext4.
std::vector<std::string> folder_of(const char* variable) {
  const char* const folder = std::getenv(variable);
  return folder == nullptr ? std::vector<std::string>() : std::vector<std::string>{folder};
}

class FastCommitHostTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { std::ofstream(m_file).flush(); }

  const std::string m_file = GetParam() + "/probed";
};

class WithFastCommitTest : public FastCommitHostTest {};
class WithoutFastCommitTest : public FastCommitHostTest {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WithFastCommitTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WithoutFastCommitTest);
INSTANTIATE_TEST_SUITE_P(Folder, WithFastCommitTest, testing::ValuesIn(folder_of("VTKV_FAST_COMMIT_FOLDER")));
INSTANTIATE_TEST_SUITE_P(Folder, WithoutFastCommitTest, testing::ValuesIn(folder_of("VTKV_PLAIN_EXT4_FOLDER")));

// Each way by itself, for a kernel need not have the first.
TEST_P(WithFastCommitTest, IsFound) {
  EXPECT_TRUE(makes_fast_commits(m_file));
  EXPECT_NE(find_fast_commit(m_file), "");
}

TEST_P(WithoutFastCommitTest, IsNotFound) {
  EXPECT_FALSE(makes_fast_commits(m_file));
  EXPECT_EQ(find_fast_commit(m_file), "");
}

}  // namespace
}  // namespace vtkv
