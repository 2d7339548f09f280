// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/pending_free.h"

#include <gtest/gtest.h>

#include <ctime>

namespace vtkv {
namespace {

constexpr SequenceNumber kNoSnapshot = UINT64_MAX;

// Of segments with ten bytes each, in a log of so many.
LogFiles files(uint64_t used, uint64_t segments) {
  LogFiles files{.all = used, .used = used, .by_epoch = {}};
  for (uint64_t epoch = 1; epoch <= segments; ++epoch) {
    files.by_epoch[epoch] = 10;
  }
  return files;
}
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

TEST(PendingFreeTest, SnapshotsAndReadersHold) {
  PendingFree pending;
  pending.add(1, 100);
  pending.add(2, 150);
  EXPECT_EQ(pending.held_bytes(kNoSnapshot, files(20, 2)), 0u);
  EXPECT_EQ(pending.held_bytes(150, files(20, 2)), 0u);
  EXPECT_EQ(pending.held_bytes(149, files(20, 2)), 10u);
  EXPECT_EQ(pending.held_bytes(0, files(20, 2)), 20u);
  pending.enter_reader_epoch(100, kNoSnapshot, 7);
  EXPECT_EQ(pending.held_bytes(kNoSnapshot, files(20, 2)), 10u);
}

TEST(PendingFreeTest, ACheckpointIsAskedForOnceAndWhenItPays) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_FALSE(pending.wants_checkpoint(50, files(10 * 12 + 1, 2)));
  EXPECT_TRUE(pending.wants_checkpoint(50, files(10 * 12, 2)));
  EXPECT_FALSE(pending.wants_checkpoint(50, files(10 * 12, 2)));  // under way
  pending.add(2, 130);
  EXPECT_FALSE(pending.wants_checkpoint(99, files(10, 2)));
  EXPECT_TRUE(pending.wants_checkpoint(100, files(10, 2)));  // for the second one
  EXPECT_FALSE(pending.wants_checkpoint(130, files(0, 2)));  // nothing waits for one
  EXPECT_EQ(pending.bytes(files(20, 2)), 20u);
}

// A log of many terabytes: what is asked of it while segments are emptied does not grow with their square.
TEST(PendingFreeTest, ManySegmentsAreLookedUpQuickly) {
  constexpr uint64_t kSegments = 300'000;
  const LogFiles log = files(kSegments * 10, kSegments);
  PendingFree pending;
  const std::clock_t begin = std::clock();
  for (uint64_t epoch = 1; epoch <= kSegments; ++epoch) {
    if (!pending.contains(epoch)) {
      pending.add(epoch, epoch);
    }
  }
  EXPECT_EQ(pending.bytes(log), kSegments * 10);
  EXPECT_TRUE(pending.wants_checkpoint(0, log));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);  // a fiftieth of that is usual, and the square takes minutes
}

TEST(PendingFreeDeathTest, ASegmentIsEmptiedOnce) {
  PendingFree pending;
  pending.add(1, 100);
  EXPECT_DEATH(pending.add(1, 110), "");
}

}  // namespace
}  // namespace vtkv
