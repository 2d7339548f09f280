// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/group_pacer.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kFlushUs = 400;

class GroupPacerTest : public testing::Test {
 protected:
  // A flush that ends at `end_us`, with so many submissions in it; so many came meanwhile to the first writer.
  void flush(uint64_t end_us, size_t ended, size_t meanwhile, uint64_t took_us = kFlushUs) {
    tell(0, 0);
    m_pacer.flush_began(end_us - took_us);
    m_pacer.flush_ended(ended, end_us);
    tell(0, meanwhile);
  }
  void tell(size_t writer, size_t waiting, bool is_writing = false) {
    m_pacer.update(&m_writers[writer], waiting, is_writing);
  }
  int64_t hold(size_t waiting, uint64_t now_us) {
    tell(0, waiting);
    return m_pacer.hold(m_writers[0], now_us).count();
  }

  GroupPacer m_pacer;
  PacedWriter m_writers[3];
};

TEST_F(GroupPacerTest, OneSubmitterAloneNeverWaits) {
  EXPECT_EQ(hold(1, 10), 0);
  flush(1000, 1, 0);
  EXPECT_EQ(hold(1, 1000), 0);
}

TEST_F(GroupPacerTest, WaitsForThoseThatTheFlushWoke) {
  flush(1000, 10, 6);
  EXPECT_GT(hold(6, 1000), 0);
  EXPECT_GT(hold(15, 1010), 0);
  EXPECT_EQ(hold(16, 1010), 0);
}

TEST_F(GroupPacerTest, WaitsNoLongerThanAQuarterOfAFlush) {
  flush(1000, 10, 6);
  EXPECT_EQ(hold(6, 1000), kFlushUs / 4);
  EXPECT_EQ(hold(6, 1000 + kFlushUs / 4), 0);
}

TEST_F(GroupPacerTest, ExpectsThoseOfTheLastFlushOnly) {
  flush(1000, 32, 0);
  flush(2000, 3, 0);
  EXPECT_EQ(hold(3, 2000), 0);
}

TEST_F(GroupPacerTest, OneSlowFlushHardlyProlongsTheWait) {
  flush(100000, 10, 6);
  flush(300000, 10, 6, 50 * kFlushUs);
  EXPECT_LE(hold(6, 300000), kFlushUs / 3);
}

TEST_F(GroupPacerTest, SubmissionsOfAllWritersCount) {
  flush(1000, 10, 0);
  tell(1, 0);
  tell(2, 0);
  tell(0, 4);
  tell(1, 5);
  EXPECT_GT(m_pacer.hold(m_writers[0], 1010).count(), 0);
  EXPECT_EQ(m_pacer.missing_of_each(), 1U);
  tell(2, 1);
  EXPECT_EQ(m_pacer.hold(m_writers[0], 1010).count(), 0);
}

TEST_F(GroupPacerTest, WhatSeveralWritersGotDuringAFlushIsExpectedToo) {
  tell(1, 0);
  flush(1000, 2, 0);
  tell(1, 3);
  tell(0, 1);
  EXPECT_GT(m_pacer.hold(m_writers[0], 1000).count(), 0) << "3 came meanwhile, and 2 that the flush served are to come";
  tell(0, 3);
  EXPECT_EQ(m_pacer.hold(m_writers[0], 1000).count(), 0);
}

TEST_F(GroupPacerTest, OnceOneRecordIsFormedTheOthersAre) {
  flush(1000, 10, 0);
  tell(0, 4);
  tell(1, 4);
  EXPECT_GT(m_pacer.hold(m_writers[0], 1000).count(), 0);
  m_pacer.record_formed();
  tell(0, 0, true);
  EXPECT_EQ(m_pacer.hold(m_writers[0], 1000).count(), 0);
  EXPECT_TRUE(m_pacer.take_released());
  EXPECT_FALSE(m_pacer.take_released());
}

TEST_F(GroupPacerTest, WhoIsBackWhenTheArrivalsWereToldIsNotExpectedTwice) {
  tell(0, 0);
  m_pacer.flush_began(1000);
  m_pacer.flush_ended(1, 1400);
  tell(0, 0);  // before anybody is told of the end
  EXPECT_EQ(hold(1, 1400), 0);
}

TEST_F(GroupPacerTest, ARecordThatTwoFlushesEndedWithoutIsHeldBackNoMore) {
  flush(1000, 10, 0);
  EXPECT_GT(hold(4, 1000), 0) << "more are to come";
  m_pacer.flush_began(1010);
  m_pacer.flush_ended(3, 1410);
  EXPECT_GT(hold(4, 1410), 0);
  m_pacer.flush_began(1420);
  m_pacer.flush_ended(3, 1820);
  EXPECT_EQ(hold(4, 1820), 0);
  tell(1, 1);
  EXPECT_GT(m_pacer.hold(m_writers[1], 1820).count(), 0) << "another's came just now";
}

TEST_F(GroupPacerTest, AFlushWaitsForRecordsThatAreBeingWritten) {
  flush(1000, 10, 0);
  tell(0, 0, true);
  tell(1, 0, true);
  EXPECT_EQ(m_pacer.hold_flush(2000, 2010).count(), kFlushUs / 4 - 10);
  EXPECT_EQ(m_pacer.hold_flush(2000, 2000 + kFlushUs / 4).count(), 0);
  tell(0, 0, false);
  tell(1, 0, false);
  EXPECT_EQ(m_pacer.hold_flush(2000, 2010).count(), 0);
}

}  // namespace
}  // namespace vtkv
