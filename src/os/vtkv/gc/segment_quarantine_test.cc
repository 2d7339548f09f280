// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/segment_quarantine.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kFirst = SegmentQuarantine::kFirstPause.count();
constexpr uint64_t kMost = SegmentQuarantine::kPauseMost.count();

Status damage(const std::string& what) { return Status::corruption(what); }

TEST(SegmentQuarantine, IsDueAfterAPauseThatDoublesUpToALimit) {
  SegmentQuarantine quarantine;
  uint64_t now = 1000;
  for (uint64_t pause = kFirst; pause < 4 * kMost; pause *= 2) {
    quarantine.add(7, damage("block"), now);
    const uint64_t expected = std::min(pause, kMost);
    EXPECT_EQ(quarantine.wait(now)->count(), static_cast<int64_t>(expected));
    EXPECT_FALSE(quarantine.due(now + expected - 1));
    now += expected;
    EXPECT_EQ(quarantine.due(now), 7u);
    EXPECT_EQ(quarantine.wait(now)->count(), 0);
  }
}

TEST(SegmentQuarantine, EachHasAPauseOfItsOwn) {
  SegmentQuarantine quarantine;
  quarantine.add(7, damage("a"), 0);
  quarantine.add(7, damage("a"), 0);
  quarantine.add(8, damage("b"), 5);
  EXPECT_EQ(quarantine.due(kFirst + 5), 8u);
  EXPECT_TRUE(quarantine.remove(8));
  EXPECT_FALSE(quarantine.remove(8));
  EXPECT_FALSE(quarantine.contains(8));
  EXPECT_FALSE(quarantine.due(2 * kFirst - 1));
  EXPECT_EQ(quarantine.due(2 * kFirst), 7u);
}

TEST(SegmentQuarantine, SaysWhatFailedLastAmongWhatItHolds) {
  SegmentQuarantine quarantine;
  EXPECT_TRUE(quarantine.status().ok());
  EXPECT_FALSE(quarantine.wait(0));
  quarantine.add(7, damage("a"), 0);
  quarantine.add(8, damage("b"), 0);
  EXPECT_EQ(quarantine.status().message(), "b");
  quarantine.remove(8);
  EXPECT_EQ(quarantine.status().message(), "a");
  quarantine.remove(7);
  EXPECT_TRUE(quarantine.status().ok());
}

TEST(SegmentQuarantine, WhoWaitsTriesAllAtOnce) {
  SegmentQuarantine quarantine;
  quarantine.add(7, damage("a"), 100);
  quarantine.add(8, damage("b"), 100);
  EXPECT_FALSE(quarantine.due(101));
  quarantine.hurry(101);
  ASSERT_TRUE(quarantine.due(101));
  quarantine.add(*quarantine.due(101), damage("again"), 101);
  ASSERT_TRUE(quarantine.due(101));
  quarantine.remove(*quarantine.due(101));
  EXPECT_FALSE(quarantine.due(101));
}

TEST(SegmentQuarantine, WhatHasFailedSinceCanBeLeftOut) {
  SegmentQuarantine quarantine;
  quarantine.add(7, damage("a"), 0);
  const uint64_t failures = quarantine.failures();
  quarantine.add(8, damage("b"), 0);
  EXPECT_EQ(quarantine.due(kFirst, failures), 7u);
  quarantine.add(7, damage("a"), 0);
  EXPECT_FALSE(quarantine.due(2 * kFirst, failures));
  EXPECT_TRUE(quarantine.due(2 * kFirst));
}

TEST(SegmentQuarantine, WhatHasBeenDueForLongestComesFirst) {
  SegmentQuarantine quarantine;
  quarantine.add(8, damage("b"), 0);
  quarantine.add(7, damage("a"), 1);
  EXPECT_EQ(quarantine.due(2 * kFirst), 8u);
}

}  // namespace
}  // namespace vtkv
