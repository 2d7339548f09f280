#include "vtkv/db/set_aside.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kFirst = SetAside::kFirstPause.count();
constexpr uint64_t kMost = SetAside::kPauseMost.count();

Status damage(const std::string& what) { return Status::corruption(what); }

TEST(SetAside, IsDueAfterAPauseThatDoublesUpToALimit) {
  SetAside aside;
  uint64_t now = 1000;
  for (uint64_t pause = kFirst; pause < 4 * kMost; pause *= 2) {
    aside.add(7, damage("block"), now);
    const uint64_t expected = std::min(pause, kMost);
    EXPECT_EQ(aside.wait(now)->count(), static_cast<int64_t>(expected));
    EXPECT_FALSE(aside.due(now + expected - 1));
    now += expected;
    EXPECT_EQ(aside.due(now), 7u);
    EXPECT_EQ(aside.wait(now)->count(), 0);
  }
}

TEST(SetAside, EachHasAPauseOfItsOwn) {
  SetAside aside;
  aside.add(7, damage("a"), 0);
  aside.add(7, damage("a"), 0);
  aside.add(8, damage("b"), 5);
  EXPECT_EQ(aside.due(kFirst + 5), 8u);
  EXPECT_TRUE(aside.remove(8));
  EXPECT_FALSE(aside.remove(8));
  EXPECT_FALSE(aside.contains(8));
  EXPECT_FALSE(aside.due(2 * kFirst - 1));
  EXPECT_EQ(aside.due(2 * kFirst), 7u);
}

TEST(SetAside, SaysWhatFailedLastAmongWhatItHolds) {
  SetAside aside;
  EXPECT_TRUE(aside.status().ok());
  EXPECT_FALSE(aside.wait(0));
  aside.add(7, damage("a"), 0);
  aside.add(8, damage("b"), 0);
  EXPECT_EQ(aside.status().message(), "b");
  aside.remove(8);
  EXPECT_EQ(aside.status().message(), "a");
  aside.remove(7);
  EXPECT_TRUE(aside.status().ok());
}

TEST(SetAside, WhoWaitsTriesAllAtOnce) {
  SetAside aside;
  aside.add(7, damage("a"), 100);
  aside.add(8, damage("b"), 100);
  EXPECT_FALSE(aside.due(101));
  aside.hurry(101);
  ASSERT_TRUE(aside.due(101));
  aside.add(*aside.due(101), damage("again"), 101);
  ASSERT_TRUE(aside.due(101));
  aside.remove(*aside.due(101));
  EXPECT_FALSE(aside.due(101));
}

TEST(SetAside, WhatHasFailedSinceCanBeLeftOut) {
  SetAside aside;
  aside.add(7, damage("a"), 0);
  const uint64_t failures = aside.failures();
  aside.add(8, damage("b"), 0);
  EXPECT_EQ(aside.due(kFirst, failures), 7u);
  aside.add(7, damage("a"), 0);
  EXPECT_FALSE(aside.due(2 * kFirst, failures));
  EXPECT_TRUE(aside.due(2 * kFirst));
}

TEST(SetAside, WhatHasBeenDueForLongestComesFirst) {
  SetAside aside;
  aside.add(8, damage("b"), 0);
  aside.add(7, damage("a"), 1);
  EXPECT_EQ(aside.due(2 * kFirst), 8u);
}

}  // namespace
}  // namespace vtkv
