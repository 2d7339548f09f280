// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/waiters.h"

#include <gtest/gtest.h>

#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class WaitersTest : public testing::Test {
 protected:
  // Runs once, beside who waits.
  std::unique_ptr<Worker> work(std::function<void()> what) {
    return m_env.start_worker("worker", 0, [this, what = std::move(what)](IoQueue&) {
      if (!m_worked) {
        m_worked = true;
        what();
        m_waiters.notify();
      }
      return NextStep::on_event();
    });
  }

  SimEnv m_env{{}};
  FatalError m_error;
  Waiters m_waiters{&m_env, &m_error};
  std::atomic<int> m_done{0};
  bool m_worked = false;
};

TEST_F(WaitersTest, WhatIsDoneIsNotWaitedFor) {
  EXPECT_TRUE(m_waiters.wait_until([] { return true; }).ok());
  m_waiters.notify();  // nobody waits
}

TEST_F(WaitersTest, WaitsForAWorker) {
  const auto worker = work([this] { m_done = 1; });
  EXPECT_TRUE(m_waiters.wait_until([this] { return m_done == 1; }).ok());
  EXPECT_TRUE(m_worked);
}

TEST_F(WaitersTest, AFatalErrorEndsTheWaitAndIsTold) {
  const auto worker = work([this] { m_error.set(Status::failed("the disk is gone")); });
  const Status status = m_waiters.wait_until([] { return false; });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("the disk is gone"), std::string::npos);
}

TEST_F(WaitersTest, WhatIsDoneCountsAlsoWhenTheDatabaseHasStopped) {
  m_error.set(Status::failed("the first"));
  m_error.set(Status::failed("a second"));
  EXPECT_TRUE(m_waiters.wait_until([] { return true; }).ok());
  EXPECT_NE(std::string(m_error.status().message()).find("the first"), std::string::npos);
  const auto worker = work([this] { m_done = 1; });
  m_waiters.wait([this] { return m_done == 1; });
  EXPECT_TRUE(m_worked);
}

}  // namespace
}  // namespace vtkv
