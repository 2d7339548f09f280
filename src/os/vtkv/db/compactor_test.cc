// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/compactor.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "vtkv/testing/db_parts_fixture.h"

namespace vtkv {
namespace {

using When = NextStep::When;

class CompactorTest : public DbPartsFixture {
 protected:
  CompactorTest() { m_options.runs_per_level = m_options.growth_factor = 2; }
  // Of the same keys.
  void make_runs(int count) {
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < 20; ++k) {
        put("key" + std::to_string(k), std::string(100, static_cast<char>('a' + i)));
      }
      flush();
    }
    ASSERT_EQ(m_tree->statistics().runs, static_cast<uint32_t>(count));
  }
  template <typename Wait>
  Status with_compactor(Wait wait) {
    return with_worker(Workers::Role::compaction, [this](IoQueue&) { return m_compactor->step(); }, wait);
  }
  uint64_t compactions() const { return m_tree->statistics().compactions; }
};

TEST_F(CompactorTest, WithNothingToDoItWaitsForAnEvent) {
  make();
  make_runs(1);
  EXPECT_EQ(m_compactor->step().when, When::on_event);
  EXPECT_EQ(compactions(), 0u);
}

TEST_F(CompactorTest, WhatIsDueIsDoneAndReadersGetTheNewRuns) {
  make();
  make_runs(2);
  EXPECT_EQ(m_compactor->step().when, When::now);
  EXPECT_EQ(compactions(), 1u);
  EXPECT_EQ(m_states->current()->version, m_tree->current());
}

TEST_F(CompactorTest, WhoAsksForACompactionFindsOneRun) {
  m_options.auto_compaction = false;
  make();
  make_runs(3);
  ASSERT_TRUE(with_compactor([this] { return m_compactor->compact(); }).ok());
  EXPECT_EQ(m_tree->statistics().runs, 1u);
}

TEST_F(CompactorTest, WithoutSpaceItIsTriedAgainAndTheWaiterIsTold) {
  m_options.auto_compaction = false;
  make();
  make_runs(3);
  const Status full = Status::from_errno(ENOSPC, "a full disk");
  m_env.fail_nth(SimCall::allocate, 1, full, true);
  m_env.fail_nth(SimCall::write, 1, full, true);
  EXPECT_TRUE(with_compactor([this] { return m_compactor->compact(); }).is_no_space());
  EXPECT_FALSE(m_pipeline->failed());
  EXPECT_TRUE(m_errors->status(kCompactionWork).is_no_space());
  EXPECT_EQ(m_compactor->step().when, When::later);
  m_env.clear_faults();
  EXPECT_TRUE(with_compactor([this] { return m_compactor->compact(); }).ok());
  EXPECT_TRUE(m_errors->current().empty());
  EXPECT_EQ(m_tree->statistics().runs, 1u);
}

// Others may be due besides what cannot be read.
TEST_F(CompactorTest, AFailureIsToldAndOthersAreLookedForSoon) {
  make();
  make_runs(2);
  m_env.set_bad(SimBad::reads, "/db/tree", 0, uint64_t{1} << 40);
  const NextStep next = m_compactor->step();
  EXPECT_FALSE(m_errors->status(kCompactionWork).ok());
  EXPECT_FALSE(m_pipeline->failed());
  EXPECT_EQ(next.when, When::later);
  EXPECT_LE(next.delay, std::chrono::milliseconds(1));
  EXPECT_GT(m_errors->wait(kCompactionWork), std::chrono::milliseconds(1));
}

// A pass is under way, and its end would not come.
TEST_F(CompactorTest, WhoWaitsForDefragmentationHearsOfACompactionThatFails) {
  make();
  make_runs(2);
  m_env.set_bad(SimBad::reads, "/db/tree", 0, uint64_t{1} << 40);
  EXPECT_FALSE(with_compactor([this] { return m_compactor->defragment({}); }).ok());
}

TEST_F(CompactorTest, WhatIsDueComesBeforeDefragmentation) {
  make();
  make_runs(2);
  uint64_t compactions_before_the_end = 0;
  ASSERT_TRUE(with_compactor([&] {
                const Status status = m_compactor->defragment({.gain_min = 0});
                compactions_before_the_end = compactions();
                return status;
              }).ok());
  EXPECT_GE(compactions_before_the_end, 1u);
  EXPECT_EQ(m_compactor->step().when, When::on_event);
}

TEST_F(CompactorTest, NothingIsBegunWhenTheDatabaseIsClosed) {
  make();
  make_runs(2);
  m_workers->stop();
  EXPECT_EQ(m_compactor->step().when, When::on_event);
  EXPECT_EQ(compactions(), 0u);
}

}  // namespace
}  // namespace vtkv
