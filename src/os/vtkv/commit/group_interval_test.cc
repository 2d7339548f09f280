// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/group_interval.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

using std::chrono::microseconds;

TEST(GroupIntervalTest, HoldsTheNextGroupUntilItIsFarEnoughFromTheLast) {
  GroupInterval interval;
  uint64_t held_us = 0;
  EXPECT_EQ(interval.hold(microseconds(100), 1000), microseconds(0));
  EXPECT_FALSE(interval.formed(1000, &held_us));
  EXPECT_EQ(interval.hold(microseconds(100), 1030), microseconds(70));
  EXPECT_EQ(interval.hold(microseconds(100), 1060), microseconds(40));
  EXPECT_EQ(interval.hold(microseconds(100), 1100), microseconds(0));
  EXPECT_TRUE(interval.formed(1110, &held_us));
  EXPECT_EQ(held_us, 80u);
}

TEST(GroupIntervalTest, AGroupThatComesLateIsNotHeld) {
  GroupInterval interval;
  uint64_t held_us = 1;
  EXPECT_FALSE(interval.formed(1000, &held_us));
  EXPECT_EQ(interval.hold(microseconds(100), 5000), microseconds(0));
  EXPECT_FALSE(interval.formed(5000, &held_us));
  EXPECT_EQ(held_us, 0u);
}

}  // namespace
}  // namespace vtkv
