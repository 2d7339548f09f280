// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/log_maintenance.h"

#include <gtest/gtest.h>

#include <thread>

#include "vtkv/testing/db_parts_fixture.h"

namespace vtkv {
namespace {

using When = NextStep::When;

class LogMaintenanceTest : public DbPartsFixture {
 protected:
  uint64_t segment_bytes() const { return m_options.geometry.log_segment_bytes; }
  // So much of the log is used that several segments are.
  void fill_segments() {
    for (int i = 0; i < 8; ++i) {
      put("key", std::string(segment_bytes() / 4, 'v'));
    }
  }
  // The second checkpoint: both copies of the manifest lie behind what was put. Nobody tells of it yet.
  void checkpoint_again() {
    m_writes->close_memtable();
    m_env.run_until_idle();
    const ClosedMemTable closed = m_states->oldest_closed();
    LogPosition position;
    ASSERT_TRUE(m_pipeline->flush_point_position(closed.last_sequence, &position));
    ASSERT_TRUE(m_tree->flush(*closed.memtable, position, {}).ok());
    m_states->install_version(closed.memtable.get());
  }
  void work_ahead() {
    while (m_log->step().when == When::now) {
    }
  }
};

TEST_F(LogMaintenanceTest, WhatNoCheckpointNeedsIsGivenBack) {
  make();
  fill_segments();
  flush();
  m_log->tell_checkpoint();
  EXPECT_GT(m_pool->used_bytes(), segment_bytes());  // the older copy needs it
  checkpoint_again();
  m_log->tell_checkpoint();
  EXPECT_EQ(m_pool->used_bytes(), segment_bytes());
  EXPECT_FALSE(m_log->awaits_readers());
}

TEST_F(LogMaintenanceTest, ValuesOfTheLogStayAsLongAsSomebodyReadsThere) {
  m_options.value_separation_bytes = 100;
  make();
  fill_segments();
  std::shared_ptr<const ReadState> reader = m_states->current();
  put("key", "the segments hold nothing that lives");
  flush();
  checkpoint_again();
  ASSERT_TRUE(m_tree->listed_epochs().empty());
  const uint64_t used = m_pool->used_bytes();
  m_log->tell_checkpoint();
  EXPECT_TRUE(m_log->awaits_readers());
  EXPECT_EQ(m_pool->used_bytes(), used);
  reader.reset();
  m_log->tell_checkpoint();
  EXPECT_FALSE(m_log->awaits_readers());
  EXPECT_EQ(m_pool->used_bytes(), segment_bytes());
}

TEST_F(LogMaintenanceTest, ReadersAreNotWaitedForWhereNoValueStaysInTheLog) {
  make();
  fill_segments();
  const std::shared_ptr<const ReadState> reader = m_states->current();
  flush();
  checkpoint_again();
  m_log->tell_checkpoint();
  EXPECT_FALSE(m_log->awaits_readers());
  EXPECT_EQ(m_pool->used_bytes(), segment_bytes());
}

class Participant final : public CheckpointParticipant {
 public:
  Status load(const TreeReader&) override { return Status(); }
  Status replay(SequenceNumber, std::string_view) override { return Status(); }
  void collect(SequenceNumber, std::vector<CheckpointEntry>*) override {}
  void checkpoint_durable(SequenceNumber as_of) override { told.push_back(as_of); }
  std::vector<SequenceNumber> told;
};

TEST_F(LogMaintenanceTest, TheParticipantIsToldOnceOfWhatBothManifestCopiesHold) {
  Participant participant;
  m_options.participant = &participant;
  make();
  put("a");
  flush();
  m_log->tell_checkpoint();
  EXPECT_TRUE(participant.told.empty());
  checkpoint_again();
  m_log->tell_checkpoint();
  m_log->tell_checkpoint();
  EXPECT_EQ(participant.told, std::vector<SequenceNumber>{1});
}

TEST_F(LogMaintenanceTest, SegmentsAreMadeAheadUntilThereAreEnough) {
  make();
  fill_segments();
  EXPECT_EQ(m_pool->room_bytes(), 0u);
  EXPECT_EQ(m_log->step().when, When::now);
  work_ahead();
  EXPECT_GT(m_pool->room_bytes(), 0u);
  EXPECT_EQ(m_log->step().when, When::on_event);
}

TEST_F(LogMaintenanceTest, WithoutSpaceItIsTriedAgainLater) {
  make();
  fill_segments();
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_EQ(m_log->step().when, When::later);
  EXPECT_TRUE(m_errors->status(kSegmentsWork).is_no_space());
  EXPECT_FALSE(m_pipeline->failed());  // who needs a segment meets the error
  m_env.set_capacity(uint64_t{1} << 40);
  EXPECT_EQ(m_log->step().when, When::later);  // it is not due yet
  m_env.advance(m_errors->wait(kSegmentsWork));
  EXPECT_EQ(m_log->step().when, When::now);
  EXPECT_TRUE(m_errors->current().empty());
}

// Free zones, and runs that only the older copy of the manifest names.
TEST_F(LogMaintenanceTest, TheTreeGivesTheLogTheSpaceThatItCanSpare) {
  make();
  for (int run = 0; run < 2; ++run) {
    for (int i = 0; i < 20; ++i) {
      put("key" + std::to_string(i), std::string(10000, 'v'));
    }
    flush();
  }
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  m_states->install_version(nullptr);
  fill_segments();
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_EQ(m_log->step().when, When::later);
  EXPECT_TRUE(m_errors->status(kSegmentsWork).is_no_space());
  m_env.advance(m_errors->wait(kSegmentsWork));
  EXPECT_EQ(m_log->step().when, When::now);
  EXPECT_TRUE(m_errors->current().empty());
}

TEST_F(LogMaintenanceTest, NoFileChangesWhileAllAreRead) {
  make();
  fill_segments();
  flush();
  checkpoint_again();
  const uint64_t used = m_pool->used_bytes();
  const uint32_t segments = m_pool->segment_count();
  m_log->while_files_stay([&] {
    std::thread workers([&] {  // in the middle of it
      EXPECT_EQ(m_log->step().when, When::on_event);
      m_log->tell_checkpoint();
    });
    workers.join();
  });
  EXPECT_EQ(m_pool->used_bytes(), used);
  EXPECT_EQ(m_pool->segment_count(), segments);
  EXPECT_TRUE(m_log->awaits_readers());  // it is tried again
  m_log->tell_checkpoint();
  EXPECT_LT(m_pool->used_bytes(), used);
}

// The collector has emptied one, and no manifest copy lists it any more.
TEST_F(LogMaintenanceTest, SegmentsThatHoldNoValueAnyMoreAreGivenBack) {
  m_options.value_separation_bytes = 100;
  make();
  put("a", std::string(100, 'v'));
  fill_segments();
  flush();
  checkpoint_again();
  m_log->tell_checkpoint();
  const std::set<uint64_t> listed = m_tree->listed_epochs();
  ASSERT_FALSE(listed.empty());
  const uint64_t used = m_pool->used_bytes();
  ASSERT_TRUE(m_tree->forget_segments(listed).ok());
  m_log->tell_checkpoint();
  EXPECT_EQ(m_pool->used_bytes(), used);
  m_log->segments_freed();
  m_log->tell_checkpoint();
  EXPECT_LT(m_pool->used_bytes(), used);
}

TEST_F(LogMaintenanceTest, NothingIsBegunWhenTheDatabaseIsClosed) {
  make();
  fill_segments();
  m_workers->stop();
  EXPECT_EQ(m_log->step().when, When::on_event);
  EXPECT_EQ(m_pool->room_bytes(), 0u);
}

}  // namespace
}  // namespace vtkv
