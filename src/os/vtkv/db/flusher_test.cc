// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/flusher.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "vtkv/testing/db_parts_fixture.h"

namespace vtkv {
namespace {

using When = NextStep::When;

class FlusherTest : public DbPartsFixture {
 protected:
  // Not durable yet.
  void submit_and_close(Write* write, const std::string& key) {
    write->batch.put(key, "");
    m_writes->submit(write);
    m_writes->close_memtable();
  }
  uint64_t flushes() const { return m_tree->statistics().flushes; }
  Status flush_with_worker() {
    return with_worker(
        Workers::Role::flush, [this](IoQueue&) { return m_flusher->step(); }, [this] { return m_flusher->flush(); });
  }
};

TEST_F(FlusherTest, AMemtableIsFlushedWhenAllOfItIsDurable) {
  make();
  Write write;
  submit_and_close(&write, "a");
  EXPECT_EQ(m_flusher->step().when, When::on_event);
  int looks = 0;  // when it is in the log's file, or on its way there
  m_env.set_step_observer([&] {
    if (LogPosition position; m_pipeline->flush_point_position(1, &position) && m_pipeline->durable_sequence() == 0) {
      ++looks;
      EXPECT_EQ(m_flusher->step().when, When::on_event);
    }
  });
  m_env.run_until_idle();
  m_env.set_step_observer(nullptr);
  EXPECT_GT(looks, 0);
  EXPECT_EQ(flushes(), 0u);
  EXPECT_EQ(m_flusher->step().when, When::now);
  EXPECT_EQ(flushes(), 1u);
  EXPECT_EQ(m_tree->newest_log_position().sequence, 1u);
}

// Readers that have found no state with the new run find the memtable.
TEST_F(FlusherTest, TheMemtableGoesWhenTheRunIsThere) {
  make();
  put("a");
  m_writes->close_memtable();
  m_env.run_until_idle();
  EXPECT_EQ(m_flusher->step().when, When::now);
  EXPECT_EQ(m_states->closed_count(), 1u);
  EXPECT_EQ(m_flusher->step().when, When::now);
  EXPECT_EQ(m_states->closed_count(), 0u);
  const std::shared_ptr<const ReadState> state = m_states->current();
  EXPECT_EQ(state->memtables.size(), 1u);
  Lookup result = Lookup::absent;
  std::string value;
  ASSERT_TRUE(state->version->get("a", 1, &result, &value).ok());
  EXPECT_EQ(result, Lookup::found);
}

TEST_F(FlusherTest, TheOldestMemtableComesFirst) {
  make();
  Write first, second;
  submit_and_close(&first, "a");
  submit_and_close(&second, "b");
  m_env.run_until_idle();
  (void)m_flusher->step();
  EXPECT_EQ(m_tree->newest_log_position().sequence, 1u);
  (void)m_flusher->step();
  (void)m_flusher->step();
  EXPECT_EQ(m_tree->newest_log_position().sequence, 2u);
}

TEST_F(FlusherTest, WhoAsksForAFlushWaitsForAllThatWasWritten) {
  make();
  WriteBatch batch;
  batch.put("a", "");
  ASSERT_TRUE(m_writes->write(std::move(batch), {.sync = false}).ok());
  ASSERT_TRUE(flush_with_worker().ok());
  EXPECT_EQ(m_tree->newest_log_position().sequence, 1u);
  EXPECT_EQ(m_states->closed_count(), 0u);
}

TEST_F(FlusherTest, WithoutSpaceItIsTriedAgainAndTheWaiterIsTold) {
  make();
  put("a");
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_TRUE(flush_with_worker().is_no_space());
  EXPECT_FALSE(m_pipeline->failed());
  EXPECT_TRUE(m_errors->status(kFlushWork).is_no_space());
  EXPECT_EQ(m_states->closed_count(), 1u);
  EXPECT_EQ(m_flusher->step().when, When::later);
  m_env.set_capacity(uint64_t{1} << 40);
  EXPECT_EQ(m_flusher->step().when, When::later);  // it is not due yet
  m_env.advance(m_errors->wait(kFlushWork));
  EXPECT_EQ(m_flusher->step().when, When::now);
  EXPECT_TRUE(m_errors->current().empty());
  EXPECT_EQ(flushes(), 1u);
}

TEST_F(FlusherTest, AnyOtherFailureStopsTheDatabase) {
  make();
  put("a");
  m_writes->close_memtable();
  m_env.run_until_idle();
  m_env.fail_nth(SimCall::write, 1, Status::from_errno(EIO, "a bad disk"), true);
  EXPECT_EQ(m_flusher->step().when, When::on_event);
  EXPECT_TRUE(m_pipeline->failed());
  EXPECT_EQ(flushes(), 0u);
}

TEST_F(FlusherTest, ACheckpointThatIsAskedForIsInBothManifestCopies) {
  make();
  put("a");
  m_flusher->request_checkpoint();
  for (int steps = 0; steps < 8; ++steps) {
    (void)m_flusher->step();
    m_env.run_until_idle();
  }
  EXPECT_EQ(m_tree->newest_log_position().sequence, 1u);
  EXPECT_EQ(m_tree->oldest_log_position().sequence, 1u);
}

TEST_F(FlusherTest, ReadersThatLogSegmentsWaitForAreLookedAtAgain) {
  m_options.value_separation_bytes = 100;
  make();
  put("a");
  std::shared_ptr<const ReadState> reader = m_states->current();
  flush();
  put("b");
  flush();
  EXPECT_EQ(m_flusher->step().when, When::later);
  reader.reset();
  EXPECT_EQ(m_flusher->step().when, When::on_event);
}

TEST_F(FlusherTest, NothingIsBegunWhenTheDatabaseIsClosed) {
  make();
  put("a");
  m_writes->close_memtable();
  m_env.run_until_idle();
  m_workers->stop();
  EXPECT_EQ(m_flusher->step().when, When::on_event);
  EXPECT_EQ(flushes(), 0u);
}

}  // namespace
}  // namespace vtkv
