// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/pending_free.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr SequenceNumber kNoSnapshot = UINT64_MAX;

uint64_t ten_bytes(uint64_t) { return 10; }
bool ended(uint64_t) { return true; }

TEST(PendingFreeTest, AnOldCheckpointKeepsASegment) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_FALSE(pending.any_unneeded(99, kNoSnapshot));
  EXPECT_TRUE(pending.any_unneeded(100, kNoSnapshot));
}

TEST(PendingFreeTest, AnOlderSnapshotKeepsASegment) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_FALSE(pending.any_unneeded(200, 99));
  EXPECT_TRUE(pending.any_unneeded(200, 100));
}

TEST(PendingFreeTest, ReadersThatBeganBeforeKeepASegment) {
  PendingFree pending;
  pending.add(1, 100);
  pending.add(2, 150);
  EXPECT_TRUE(pending.unread(ended).empty());  // in no reader epoch yet
  pending.enter_reader_epoch(120, kNoSnapshot, 7);
  EXPECT_TRUE(pending.await_readers());
  EXPECT_FALSE(pending.any_unneeded(120, kNoSnapshot));  // each enters once
  EXPECT_TRUE(pending.unread([](uint64_t epoch) { return epoch < 7; }).empty());
  EXPECT_EQ(pending.unread([](uint64_t epoch) { return epoch <= 7; }), std::set<uint64_t>{1});
  pending.remove({1});
  EXPECT_FALSE(pending.contains(1));
  EXPECT_TRUE(pending.contains(2));
  EXPECT_FALSE(pending.await_readers());
  pending.enter_reader_epoch(150, kNoSnapshot, 8);
  EXPECT_EQ(pending.unread(ended), std::set<uint64_t>{2});
}

TEST(PendingFreeTest, ACheckpointIsAskedForOnceAndWhenItPays) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_FALSE(pending.wants_checkpoint(50, 10 * 12 + 1, ten_bytes));
  EXPECT_TRUE(pending.wants_checkpoint(50, 10 * 12, ten_bytes));
  EXPECT_FALSE(pending.wants_checkpoint(50, 10 * 12, ten_bytes));  // under way
  pending.add(2, 130);
  EXPECT_FALSE(pending.wants_checkpoint(99, 10, ten_bytes));
  EXPECT_TRUE(pending.wants_checkpoint(100, 10, ten_bytes));  // for the second one
  EXPECT_FALSE(pending.wants_checkpoint(130, 0, ten_bytes));  // nothing waits for one
  EXPECT_EQ(pending.bytes(ten_bytes), 20u);
}

TEST(PendingFreeDeathTest, ASegmentIsEmptiedOnce) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_DEATH(pending.add(1, 110), "");
}

}  // namespace
}  // namespace vtkv
