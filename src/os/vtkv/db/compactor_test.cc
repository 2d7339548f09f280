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

// Two compactions follow one another on a host that has room for both outputs, but not for the first one's inputs
// beside them.
class FullHostTest : public CompactorTest {
 protected:
  void SetUp() override {
    m_options.stitch_threshold_bytes = kNeverStitch;
    make();
    put_many(0, 200);
    put_many(200, 400);
    while (m_compactor->step().when == When::now) {
    }
    put_many(0, 100);
    put_many(0, 100);
    m_compactions_before = compactions();
    ASSERT_TRUE(m_tree->give_back_zones().ok());
    m_env.set_capacity(m_env.allocated_bytes() + 5 * m_options.geometry.zone_bytes);
  }
  // A run of a zone for each 30 or so.
  void put_many(int first, int end) {
    for (int i = first; i < end; ++i) {
      WriteBatch batch;
      batch.put("key" + std::to_string(1000 + i), std::string(2000, 'v'));
      ASSERT_TRUE(m_writes->write(std::move(batch), {}).ok());
    }
    flush();
  }
  // Nothing is written meanwhile.
  void run_to_rest() {
    NextStep next = m_compactor->step();
    for (int steps = 0; next.when != When::on_event; ++steps) {
      ASSERT_LT(steps, 20) << m_errors->status(kCompactionWork).to_string();
      m_env.advance(next.delay);
      next = m_compactor->step();
    }
    EXPECT_TRUE(m_errors->current().empty());
    EXPECT_GE(compactions(), m_compactions_before + 1);
    EXPECT_EQ(m_tree->statistics().runs, 1u);
  }
  uint64_t m_compactions_before = 0;
};

TEST_F(FullHostTest, ACompactionWithoutSpaceSucceedsLaterWithoutAWrite) {
  run_to_rest();
  EXPECT_EQ(m_errors->failures(), 1u);
}

TEST_F(FullHostTest, WhileItIsKnownThatSpaceIsShortNothingFails) {
  (void)m_tree->spare_space_after(Status::from_errno(ENOSPC, "a full disk"));
  run_to_rest();
  EXPECT_EQ(m_errors->failures(), 0u);
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

// Of a tree of several zones, in which no compaction is due.
class DefragmentationTest : public CompactorTest {
 protected:
  DefragmentationTest() { m_options.auto_compaction = false; }
  void SetUp() override {
    make();
    for (int i = 0; i < 200; ++i) {
      put("key" + std::to_string(1000 + i), std::string(2000, static_cast<char>('a' + i % 26)));
      if (i % 20 == 19) {
        flush();
      }
    }
  }
  // The first step of such a pass, which is held back for an hour then.
  void begin_slow_pass() {
    m_compactor->begin_defragment({.gain_min = 0, .bytes_per_step = 16 << 10, .bytes_per_second = 4});
    const NextStep next = m_compactor->step();
    ASSERT_EQ(next.when, When::later);
    ASSERT_GT(next.delay, std::chrono::minutes(60));
    ASSERT_GT(moved(), 0u);
  }
  uint64_t moved() const { return m_compactor->defragment_report().moved_bytes; }
};

TEST_F(DefragmentationTest, APassKeepsToItsRateHoweverOftenTheWorkerIsWoken) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  const uint64_t before = moved();
  m_env.advance(std::chrono::minutes(1));
  const NextStep next = m_compactor->step();
  EXPECT_EQ(moved(), before);
  EXPECT_EQ(next.when, When::later);
  EXPECT_GT(next.delay, std::chrono::minutes(59));
  m_env.advance(next.delay);
  m_compactor->step();
  EXPECT_GT(moved(), before);
}

TEST_F(DefragmentationTest, OneThatIsHeldBackIsStoppedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  const DefragmentReport before = m_compactor->defragment_report();
  EXPECT_TRUE(before.is_running);
  EXPECT_GE(before.chosen_zones, 5u);
  EXPECT_LT(before.moved_bytes, before.chosen_bytes);
  m_compactor->stop_defragment();
  EXPECT_EQ(m_compactor->step().when, When::on_event);
  const DefragmentReport after = m_compactor->defragment_report();
  EXPECT_FALSE(after.is_running);
  EXPECT_TRUE(after.error.ok());
  EXPECT_EQ(after.moved_bytes, before.moved_bytes);
  m_compactor->begin_defragment({.gain_min = 0, .bytes_per_second = 0});
  EXPECT_EQ(m_compactor->defragment_report().moved_bytes, 0u) << "of the newest pass";
  while (m_compactor->step().when == When::now) {
  }
  EXPECT_FALSE(m_compactor->defragment_report().is_running);
  EXPECT_GT(moved(), before.moved_bytes);
  EXPECT_EQ(m_compactor->defragmented_bytes(), before.moved_bytes + moved());
}

TEST_F(DefragmentationTest, OneThatOnlyMeasuresMovesNothing) {
  m_compactor->begin_defragment({.gain_min = 0, .only_measure = true});
  EXPECT_TRUE(m_compactor->defragment_report().is_running);
  EXPECT_EQ(m_compactor->step().when, When::on_event);
  const DefragmentReport report = m_compactor->defragment_report();
  EXPECT_FALSE(report.is_running);
  EXPECT_GE(report.chosen_zones, 5u);
  EXPECT_GE(report.fragments, report.chosen_zones);
  EXPECT_EQ(report.chosen_bytes + report.unused_bytes, report.chosen_zones * m_options.geometry.zone_bytes);
  EXPECT_EQ(report.moved_bytes, 0u);
  EXPECT_EQ(m_tree->statistics().compaction_bytes, 0u);
}

TEST_F(DefragmentationTest, OneThatFailsIsOverAndTellsWhy) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  m_env.advance(std::chrono::hours(24));
  m_env.set_bad(SimBad::reads, "/db/tree", 0, uint64_t{1} << 40);
  m_compactor->step();
  const DefragmentReport report = m_compactor->defragment_report();
  EXPECT_FALSE(report.is_running);
  EXPECT_FALSE(report.error.ok());
}

// A compaction that was due came first.
TEST_F(DefragmentationTest, OneThatFailsBeforeItBeginsTellsNothingOfTheOneBefore) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  m_compactor->stop_defragment();
  m_compactor->step();
  m_env.set_bad(SimBad::reads, "/db/tree", 0, uint64_t{1} << 40);
  EXPECT_FALSE(with_compactor([this] {
                 m_compactor->begin_defragment({.gain_min = 0});
                 return m_compactor->compact();
               }).ok());
  const DefragmentReport report = m_compactor->defragment_report();
  EXPECT_FALSE(report.is_running);
  EXPECT_FALSE(report.error.ok());
  EXPECT_EQ(report.chosen_zones, 0u);
  EXPECT_EQ(report.moved_bytes, 0u);
}

// The manifest is written anew when a pass ends.
TEST_F(DefragmentationTest, WhatFailsAtItsEndIsToldAndTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  while (moved() < 3 * m_options.geometry.zone_bytes) {
    m_env.advance(std::chrono::hours(24));
    ASSERT_EQ(m_compactor->step().when, When::later);
  }
  const uint64_t before = m_env.allocated_bytes();
  m_env.fail_nth(SimCall::write, 1, Status::from_errno(ENOSPC, "a full disk"), true);
  m_compactor->stop_defragment();
  EXPECT_EQ(m_compactor->step().when, When::later);
  EXPECT_TRUE(m_compactor->defragment_report().error.is_no_space());
  EXPECT_TRUE(m_errors->status(kCompactionWork).is_no_space());
  EXPECT_EQ(m_env.allocated_bytes(), before);
  m_env.clear_faults();
  m_env.advance(std::chrono::minutes(10));
  EXPECT_EQ(m_compactor->step().when, When::on_event);
  EXPECT_TRUE(m_errors->current().empty());
  EXPECT_LT(m_env.allocated_bytes(), before);
}

TEST_F(DefragmentationTest, NoneRunsInADatabaseThatStops) {
  ASSERT_NO_FATAL_FAILURE(begin_slow_pass());
  m_workers->stop();
  EXPECT_FALSE(m_compactor->defragment_report().is_running);
  EXPECT_FALSE(m_compactor->defragment_report().error.ok());
}

// What is written meanwhile may lie in zones that it has emptied.
TEST_F(DefragmentationTest, APassEndsHoweverMuchIsWrittenMeanwhile) {
  m_compactor->begin_defragment({.gain_min = 0, .bytes_per_step = 16 << 10, .bytes_per_second = 1 << 20});
  int steps = 0;
  do {
    ASSERT_LT(++steps, 200) << m_compactor->defragment_report().moved_bytes;
    m_env.advance(m_compactor->step().delay);
    for (int i = 0; i < 20; ++i) {
      put("new" + std::to_string(steps * 100 + i), std::string(2000, 'n'));
    }
    flush();
  } while (m_compactor->defragment_report().is_running);
  const DefragmentReport report = m_compactor->defragment_report();
  EXPECT_TRUE(report.error.ok());
  EXPECT_LT(report.moved_bytes, 2 * report.chosen_bytes);
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
