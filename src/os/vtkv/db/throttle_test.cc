// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/throttle.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

using std::chrono::microseconds;

TEST(Throttle, WhatIsUsualDelaysNobody) {
  EXPECT_EQ(Throttle::delay(0, 0, 0), microseconds(0));
  EXPECT_EQ(Throttle::delay(4, 0.75, 1.4), microseconds(0));
}

TEST(Throttle, GrowsWithEachOfTheThree) {
  EXPECT_EQ(Throttle::delay(5, 0, 0), microseconds(2000));
  EXPECT_EQ(Throttle::delay(7, 0, 0), microseconds(6000));
  EXPECT_EQ(Throttle::delay(0, 0.875, 0), microseconds(25000));
  EXPECT_NEAR(static_cast<double>(Throttle::delay(0, 0, 1.9).count()), 10000, 1);
  EXPECT_EQ(Throttle::delay(5, 0.875, 0), microseconds(27000));
}

TEST(Throttle, NeverStopsWriters) { EXPECT_EQ(Throttle::delay(1000, 1e9, 100), microseconds(50000)); }

}  // namespace
}  // namespace vtkv
