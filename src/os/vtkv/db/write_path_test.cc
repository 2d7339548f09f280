// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/write_path.h"

#include <gtest/gtest.h>

#include <deque>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/testing/db_parts_fixture.h"

namespace vtkv {
namespace {

class WritePathTest : public DbPartsFixture {
 protected:
  void write_unsynced(const std::string& key, size_t value_bytes) {
    WriteBatch batch;
    batch.put(key, std::string(value_bytes, 'v'));
    ASSERT_TRUE(m_writes->write(std::move(batch), {.sync = false}).ok());
  }
  // Empty ones, which take a block of the log and nothing of the memtable.
  void submit_empty(int count) {
    for (int i = 0; i < count; ++i) {
      Write write;
      m_writes->submit(&write);
      m_env.run_until_idle();
      ASSERT_TRUE(write.ended);
    }
  }
};

TEST_F(WritePathTest, ABatchIsVisibleAtOnceAndDurableLater) {
  make();
  Write write;
  write.batch.put("a", "");
  write.batch.put("b", "");
  m_writes->submit(&write);
  EXPECT_EQ(write.last_sequence, 2u);
  EXPECT_EQ(m_states->visible(), 2u);
  EXPECT_EQ(look_up("b"), Lookup::found);
  EXPECT_FALSE(write.ended);
  m_env.run_until_idle();
  EXPECT_TRUE(write.ended);
  EXPECT_TRUE(write.result.ok());
}

TEST_F(WritePathTest, ABatchIsToldItsSequenceWhenItHasIt) {
  make();
  Write first, second;
  first.batch.put("a", "");
  m_writes->submit(&first);
  EXPECT_EQ(first.sequenced_at, 1u);
  second.batch.remove_range("a", "c");
  second.batch.put("b", "");
  m_writes->submit(&second);
  EXPECT_EQ(second.sequenced_at, 3u);
  m_env.run_until_idle();
}

TEST_F(WritePathTest, AFullMemtableIsClosedBehindTheBatchThatFilledIt) {
  m_options.memtable_bytes = 64 << 10;
  make();
  put("small");
  EXPECT_EQ(m_states->closed_count(), 0u);
  put("large", std::string(64 << 10, 'v'));
  ASSERT_EQ(m_states->closed_count(), 1u);
  EXPECT_EQ(m_states->oldest_closed().last_sequence, 2u);
  LogPosition position;
  ASSERT_TRUE(m_pipeline->flush_point_position(2, &position));
  EXPECT_EQ(position.sequence, 2u);
  put("next");
  EXPECT_EQ(m_states->closed_count(), 1u);
}

TEST_F(WritePathTest, ALongLogClosesAMemtableThatIsSmall) {
  m_options.checkpoint_log_bytes = 16 * kLogBlockBytes;
  make();
  submit_empty(8);
  EXPECT_EQ(m_states->closed_count(), 0u);
  submit_empty(12);
  EXPECT_EQ(m_states->closed_count(), 1u);
}

class Participant final : public CheckpointParticipant {
 public:
  Status load(const TreeReader&) override { return Status(); }
  Status replay(SequenceNumber, std::string_view) override { return Status(); }
  void collect(SequenceNumber as_of, std::vector<CheckpointEntry>* entries) override {
    asked = as_of;
    entries->push_back({"of the participant", "state"});
    entries->push_back({"a", std::nullopt});
  }
  void checkpoint_durable(SequenceNumber) override {}
  SequenceNumber asked = 0;
};

TEST_F(WritePathTest, TheParticipantsEntriesAreInTheMemtableThatIsClosed) {
  Participant participant;
  m_options.participant = &participant;
  make();
  put("a");
  m_writes->close_memtable();
  EXPECT_EQ(participant.asked, 1u);
  const MemTable& closed = *m_states->oldest_closed().memtable;
  std::string value;
  EXPECT_EQ(closed.get("of the participant", 1, &value), Lookup::found);
  EXPECT_EQ(value, "state");
  EXPECT_EQ(closed.get("a", 1, &value), Lookup::removed);
}

// Both copies of the manifest are to have what is in the tree, so that the log can be given up.
TEST_F(WritePathTest, AnEmptyMemtableIsClosedUntilBothManifestCopiesAreTheSame) {
  make();
  put("a");
  EXPECT_EQ(m_writes->close_memtable(), 1u);
  EXPECT_EQ(m_writes->close_memtable(), 1u);  // the closed one will make a checkpoint
  flush();
  EXPECT_EQ(m_writes->close_memtable(), 2u);
  flush();
  EXPECT_EQ(m_writes->close_memtable(), 2u);
}

TEST_F(WritePathTest, AWriterThatRunsAheadOfTheLogWaits) {
  make();
  const uint64_t most = unwritten_bytes_most(m_options.memtable_bytes);
  DBStatistics statistics;
  while (m_pipeline->write_buffer_bytes() + (32 << 10) <= most) {
    write_unsynced("a", 31 << 10);
  }
  m_writes->add_statistics(&statistics);
  EXPECT_EQ(statistics.write_waits, 0u);
  write_unsynced("a", 32 << 10);
  m_writes->add_statistics(&statistics);
  EXPECT_EQ(statistics.write_waits, 1u);
  EXPECT_LE(m_pipeline->write_buffer_bytes(), most);
}

// Two memtables that wait to be flushed, with what is behind them.
class CrowdedTest : public WritePathTest {
 protected:
  void crowd() {
    m_options.value_separation_bytes = 4 << 10;  // no value of the test
    make();
    while (!m_states->memtables_are_crowded(m_options.memtable_bytes)) {
      Write& write = m_ahead.emplace_back();
      write.batch.put(std::to_string(m_ahead.size()), std::string(2 << 10, 'v'));
      m_writes->submit(&write);
      m_closed_at = m_states->closed_count() < 2 || m_closed_at > 0 ? m_closed_at : m_states->visible();
    }
    ASSERT_EQ(m_states->closed_count(), 2u);
    m_env.run_until_idle();
  }
  void flush_all() {
    while (m_flusher->step().when == NextStep::When::now) {
    }
    m_env.run_until_idle();
  }
  void TearDown() override { flush_all(); }
  std::deque<Write> m_ahead;
  SequenceNumber m_closed_at = 0;  // the second one
};

TEST_F(CrowdedTest, WhoDoesNotWaitIsHeldInTheLog) {
  crowd();
  EXPECT_EQ(m_pipeline->logged_sequence(), m_closed_at);
  Write held;
  held.batch.put("held", "");
  m_writes->submit(&held);
  m_env.run_until_idle();
  EXPECT_EQ(look_up("held"), Lookup::found);
  EXPECT_FALSE(held.ended);
  EXPECT_EQ(m_pipeline->logged_sequence(), m_closed_at);
  flush_all();
  EXPECT_TRUE(held.ended);
}

// Otherwise its memtable could not be flushed.
TEST_F(CrowdedTest, WhatAFlushWaitsForIsNotHeld) {
  crowd();
  Write held, last;
  held.batch.put("held", "");
  m_writes->submit(&held);
  m_env.run_until_idle();
  EXPECT_FALSE(held.ended);
  last.batch.put("last", std::string(m_options.memtable_bytes, 'v'));  // fills it
  m_writes->submit(&last);
  m_env.run_until_idle();
  EXPECT_TRUE(held.ended && last.ended);
}

TEST_F(CrowdedTest, NothingIsRelocated) {
  crowd();
  Relocated relocated;
  const std::vector<Relocation> values{{"1", "value", {}}};
  EXPECT_EQ(m_writes->relocate(values, m_states->visible(), &relocated).code(), Status::Code::busy);
  flush_all();
  EXPECT_TRUE(m_writes->relocate(values, m_states->visible(), &relocated).ok());
}

TEST_F(WritePathTest, ABatchLargerThanARecordIsWaitedFor) {
  make();
  write_unsynced("small", 100);
  EXPECT_EQ(m_pipeline->durable_sequence(), 0u);
  write_unsynced("large", 128 << 10);
  EXPECT_EQ(m_pipeline->durable_sequence(), 2u);
}

TEST_F(WritePathTest, AValueThatWasPutSinceIsNotRelocated) {
  make();
  put("a");
  put("b");
  const SequenceNumber checked = m_states->visible();
  put("a", "newer");
  Relocated relocated;
  const std::vector<Relocation> values{{"a", "value", {}}, {"b", "value", {}}};
  ASSERT_TRUE(m_writes->relocate(values, checked, &relocated).ok());
  const SequenceNumber last = relocated.last;
  EXPECT_EQ(last, 4u);
  EXPECT_EQ(relocated.values, 1u);
  EXPECT_EQ(relocated.bytes, WriteBatch::put_bytes(1, 5));
  std::string value;
  const MemTable& memtable = *m_states->current()->memtables.front();
  ASSERT_EQ(memtable.get("a", last, &value), Lookup::found);
  EXPECT_EQ(value, "newer");
  EXPECT_TRUE(memtable.touches("b", 3));
}

// The memtable that would tell what was put since is gone.
TEST_F(WritePathTest, NothingIsRelocatedWhenAMemtableWasFlushedMeanwhile) {
  make();
  put("a");
  const SequenceNumber checked = m_states->visible();
  put("a", "newer");
  flush();
  Relocated relocated;
  EXPECT_EQ(m_writes->relocate(std::vector<Relocation>{{"a", "value", {}}}, checked, &relocated).code(),
            Status::Code::busy);
  EXPECT_EQ(look_up("a"), Lookup::absent);
}

TEST_F(WritePathTest, TheReuseHorizonMovesByOneEmptyRecordWhenItIsBehind) {
  make();
  m_writes->advance_reuse_horizon();
  m_env.run_until_idle();
  EXPECT_EQ(m_states->visible(), 0u);  // there is nothing that it could move over
  put("a");
  EXPECT_EQ(m_pipeline->reuse_horizon(), 0u);
  m_writes->advance_reuse_horizon();
  m_writes->advance_reuse_horizon();
  m_env.run_until_idle();
  EXPECT_EQ(m_states->visible(), 2u);
  EXPECT_EQ(m_pipeline->reuse_horizon(), 1u);
  m_writes->advance_reuse_horizon();
  m_env.run_until_idle();
  EXPECT_EQ(m_states->visible(), 2u);
}

TEST_F(WritePathTest, NothingIsTakenAfterAFailure) {
  make();
  m_pipeline->fail(Status::failed("a test"));
  Write write;
  write.batch.put("a", "");
  m_writes->submit(&write);
  EXPECT_TRUE(write.ended);
  EXPECT_FALSE(write.result.ok());
  WriteBatch batch;
  batch.put("b", "");
  EXPECT_FALSE(m_writes->write(std::move(batch), {.sync = false}).ok());
  Relocated relocated;
  EXPECT_FALSE(m_writes->relocate(std::vector<Relocation>{{"c", "", {}}}, 0, &relocated).ok());
  EXPECT_EQ(m_states->visible(), 0u);
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(look_up(key), Lookup::absent);
  }
}

}  // namespace
}  // namespace vtkv
