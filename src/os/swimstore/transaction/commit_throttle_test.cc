// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/commit_throttle.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

namespace swimstore {

namespace {

// What an op thread's heartbeat would see.
class FakeHandle final : public HBHandle {
 public:
  void suspend_tp_timeout() override { ++suspended; }
  void reset_tp_timeout() override { ++reset; }
  std::atomic<int> suspended{0};
  std::atomic<int> reset{0};
};

class CommitThrottleTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (std::thread& thread : m_threads) {
      thread.join();
    }
    EXPECT_EQ(0u, m_throttle.waiting());
  }
  // A thread that takes so much; returns when it waits for that.
  void start_waiter(uint64_t bytes, std::function<void()> then = {}) {
    const uint64_t before = m_throttle.waiting();
    m_threads.emplace_back([this, bytes, then = std::move(then)] {
      EXPECT_GT(m_throttle.take_us(bytes, &m_handle), 0u);
      if (then) {
        then();
      }
    });
    wait_until([this, before] { return m_throttle.waiting() == before + 1; });
  }
  static void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  CommitThrottle m_throttle{vtkv::posix_env(), 100};
  FakeHandle m_handle;
  std::vector<std::thread> m_threads;
};

}  // namespace

TEST_F(CommitThrottleTest, NobodyWaitsWithinTheLimit) {
  EXPECT_EQ(0u, m_throttle.take_us(60, &m_handle));
  EXPECT_EQ(0u, m_throttle.take_us(40, &m_handle));
  EXPECT_EQ(100u, m_throttle.taken_bytes());
  EXPECT_EQ(0, m_handle.suspended);
}

TEST_F(CommitThrottleTest, WhoFindsNoRoomWaitsUntilThereIs) {
  m_throttle.take_us(60, nullptr);
  start_waiter(41);
  EXPECT_EQ(60u, m_throttle.taken_bytes());
  EXPECT_EQ(1, m_handle.suspended);
  EXPECT_EQ(0, m_handle.reset);
  m_throttle.give_back(1);
  wait_until([this] { return m_throttle.taken_bytes() == 100; });
  wait_until([this] { return m_handle.reset == 1; });
}

TEST_F(CommitThrottleTest, WhoWaitsKeepsHisTurn) {
  m_throttle.take_us(90, nullptr);
  std::vector<int> order;
  start_waiter(50, [&order] { order.push_back(1); });
  start_waiter(10, [&order] { order.push_back(2); });  // would fit
  EXPECT_EQ(90u, m_throttle.taken_bytes());
  EXPECT_TRUE(order.empty());
  m_throttle.give_back(50);
  wait_until([this] { return m_throttle.taken_bytes() == 100; });
  TearDown();
  m_threads.clear();
  EXPECT_EQ(2u, order.size());
}

TEST_F(CommitThrottleTest, WhatIsLargerThanTheLimitGoesAlone) {
  m_throttle.take_us(1, nullptr);
  start_waiter(1000);
  m_throttle.give_back(1);
  wait_until([this] { return m_throttle.taken_bytes() == 1000; });
  start_waiter(1);
  m_throttle.give_back(1000);
  wait_until([this] { return m_throttle.taken_bytes() == 1; });
}

TEST_F(CommitThrottleTest, WhatPlanningAddsNeverWaits) {
  m_throttle.take_us(100, nullptr);
  m_throttle.take_more(50);
  EXPECT_EQ(150u, m_throttle.taken_bytes());
  start_waiter(1);
  m_throttle.give_back(51);
  wait_until([this] { return m_throttle.taken_bytes() == 100; });
}

TEST_F(CommitThrottleTest, AHigherLimitLetsThoseGoWhoWait) {
  m_throttle.take_us(100, nullptr);
  start_waiter(20);
  start_waiter(30);
  m_throttle.set_limit(150);
  wait_until([this] { return m_throttle.taken_bytes() == 150; });
}

TEST_F(CommitThrottleTest, WithoutALimitNobodyWaits) {
  m_throttle.set_limit(0);
  EXPECT_EQ(0u, m_throttle.take_us(1u << 30, nullptr));
  EXPECT_EQ(0u, m_throttle.take_us(1u << 30, nullptr));
  m_throttle.set_limit(10);
  start_waiter(1);
  m_throttle.set_limit(0);
}

}  // namespace swimstore
