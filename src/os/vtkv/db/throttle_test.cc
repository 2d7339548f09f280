// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/throttle.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

using std::chrono::microseconds;

class ThrottleTest : public testing::Test {
 protected:
  static Options options() {
    Options options;
    options.memtable_bytes = 1 << 20;
    options.runs_per_level = 4;
    return options;
  }
  static constexpr uint64_t kDebtTolerated = 8 * 4 * (1 << 20);

  const Throttle m_throttle{options()};
};

TEST_F(ThrottleTest, WhatIsUsualDelaysNobody) {
  EXPECT_EQ(m_throttle.delay(0, 0, 0), microseconds(0));
  EXPECT_EQ(m_throttle.delay(4, kDebtTolerated, 1.4), microseconds(0));
}

TEST_F(ThrottleTest, GrowsWithEachOfTheThree) {
  EXPECT_EQ(m_throttle.delay(5, 0, 0), microseconds(2000));
  EXPECT_EQ(m_throttle.delay(7, 0, 0), microseconds(6000));
  EXPECT_EQ(m_throttle.delay(0, 2 * kDebtTolerated, 0), microseconds(2000));
  EXPECT_EQ(m_throttle.delay(0, kDebtTolerated + kDebtTolerated / 2, 0), microseconds(1000));
  EXPECT_NEAR(static_cast<double>(m_throttle.delay(0, 0, 1.9).count()), 10000, 1);
  EXPECT_EQ(m_throttle.delay(5, 2 * kDebtTolerated, 0), microseconds(4000));
}

TEST_F(ThrottleTest, NeverStopsWriters) { EXPECT_EQ(m_throttle.delay(1000, UINT64_MAX / 2, 100), microseconds(50000)); }

}  // namespace
}  // namespace vtkv
