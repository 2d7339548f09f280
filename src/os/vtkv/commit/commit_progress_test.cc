// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_progress.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

class CommitProgressTest : public testing::Test {
 protected:
  CommitProgress m_progress{10, 9};
};

TEST_F(CommitProgressTest, BeginsWhereRecoveryEnded) {
  EXPECT_EQ(m_progress.durable(), 10u);
  EXPECT_EQ(m_progress.logged(), 10u);
  EXPECT_EQ(m_progress.reuse_horizon(), 9u);
}

TEST_F(CommitProgressTest, TheHorizonFollowsWhatIsDurableAndNeverMovesBack) {
  m_progress.enqueued(20);
  m_progress.advance_durable(20);
  EXPECT_EQ(m_progress.reuse_horizon(), 9u);
  EXPECT_TRUE(m_progress.raise_horizon(15));
  EXPECT_FALSE(m_progress.raise_horizon(15));
  EXPECT_FALSE(m_progress.raise_horizon(12));
  EXPECT_EQ(m_progress.reuse_horizon(), 15u);
}

TEST_F(CommitProgressTest, LoggedKeepsTheGreatest) {
  m_progress.enqueued(30);
  m_progress.advance_logged(25);
  m_progress.advance_logged(22);
  EXPECT_EQ(m_progress.logged(), 25u);
}

using CommitProgressDeathTest = CommitProgressTest;

TEST_F(CommitProgressDeathTest, NothingIsDurableThatWasNotEnqueued) {
  m_progress.enqueued(20);
  EXPECT_DEATH(m_progress.advance_durable(21), "");
}

TEST_F(CommitProgressDeathTest, DurableDoesNotMoveBack) {
  m_progress.enqueued(20);
  m_progress.advance_durable(15);
  EXPECT_DEATH(m_progress.advance_durable(14), "");
}

TEST_F(CommitProgressDeathTest, NothingIsReusedThatIsNotDurable) {
  m_progress.enqueued(20);
  m_progress.advance_durable(15);
  EXPECT_DEATH(m_progress.raise_horizon(16), "");
}

}  // namespace
}  // namespace vtkv
