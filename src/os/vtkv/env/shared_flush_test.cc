// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/shared_flush.h"

#include <gtest/gtest.h>

#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

// Keeps what is submitted, and ends none of it.
class StoppedQueue final : public IoQueue {
 public:
  void submit(IoRequest* request) override { m_submitted.push_back(request); }
  void reap(std::vector<IoRequest*>*) override {}
  size_t in_flight() const override { return m_submitted.size(); }

  std::vector<IoRequest*> m_submitted;
};

class SharedFlushTest : public testing::Test {
 protected:
  SharedFlushTest() {
    for (IoRequest& request : m_requests) {
      request.op = IoRequest::Op::sync;
      request.any_file = true;
    }
  }
  // So long does the one under way take.
  const std::vector<IoRequest*>& end_after(std::chrono::microseconds time) {
    m_sim.advance(time);
    m_queue.m_submitted.back()->result = m_result;
    return m_flush.end();
  }

  SimEnv m_sim;
  StoppedQueue m_queue;
  SharedFlush m_flush{&m_sim};
  IoRequest m_requests[4];
  Status m_result;
};

TEST_F(SharedFlushTest, ServesWhoAskedBeforeItBegan) {
  m_flush.add(&m_requests[0]);
  m_flush.add(&m_requests[1]);
  EXPECT_EQ(m_flush.begin(m_queue).count(), 0);
  ASSERT_EQ(m_queue.m_submitted.size(), 1U);
  EXPECT_TRUE(m_flush.is(m_queue.m_submitted[0]));
  m_result = Status::failed("the disk is gone");
  EXPECT_EQ(end_after(std::chrono::microseconds(400)), (std::vector<IoRequest*>{&m_requests[0], &m_requests[1]}));
  EXPECT_FALSE(m_requests[0].result.ok());
  EXPECT_FALSE(m_requests[1].result.ok());
}

TEST_F(SharedFlushTest, WhoAsksWhileOneIsUnderWayWaitsForTheNext) {
  m_flush.add(&m_requests[0]);
  m_flush.begin(m_queue);
  m_flush.add(&m_requests[1]);
  EXPECT_EQ(m_flush.begin(m_queue).count(), 0);
  EXPECT_EQ(m_queue.m_submitted.size(), 1U) << "one at a time";
  EXPECT_EQ(end_after(std::chrono::microseconds(400)), std::vector<IoRequest*>{&m_requests[0]});
  m_sim.advance(std::chrono::milliseconds(1));
  m_flush.begin(m_queue);
  EXPECT_EQ(m_queue.m_submitted.size(), 2U);
  EXPECT_EQ(end_after(std::chrono::microseconds(400)), std::vector<IoRequest*>{&m_requests[1]});
}

TEST_F(SharedFlushTest, TheBrokenRuleServesHimTooEarly) {
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::flush_joined_late);
  m_flush.add(&m_requests[0]);
  m_flush.begin(m_queue);
  m_flush.add(&m_requests[1]);
  EXPECT_EQ(end_after(std::chrono::microseconds(400)).size(), 2U);
}

TEST_F(SharedFlushTest, IsHeldBackForRecordsThatAreBeingWritten) {
  PacedWriter slow;
  m_flush.add(&m_requests[0]);
  m_flush.begin(m_queue);
  end_after(std::chrono::microseconds(400));
  m_flush.pacer().update(&slow, 0, true);
  m_flush.add(&m_requests[0]);
  const auto hold = m_flush.begin(m_queue);
  EXPECT_GT(hold.count(), 50);
  EXPECT_LE(hold.count(), 110);
  EXPECT_EQ(m_queue.m_submitted.size(), 1U);
  m_flush.add(&m_requests[1]);
  m_flush.pacer().update(&slow, 0, false);
  EXPECT_EQ(m_flush.begin(m_queue).count(), 0);
  EXPECT_EQ(m_queue.m_submitted.size(), 2U);
  EXPECT_EQ(end_after(std::chrono::microseconds(400)).size(), 2U);
}

TEST_F(SharedFlushTest, TellsThePacerHowManyItServed) {
  PacedWriter writer;
  m_requests[0].waiters = 2;
  m_requests[1].waiters = 3;
  m_flush.add(&m_requests[0]);
  m_flush.add(&m_requests[1]);
  m_flush.begin(m_queue);
  EXPECT_EQ(m_queue.m_submitted[0]->waiters, 5U) << "no lone sync of one client (IoRing)";
  EXPECT_TRUE(m_flush.pacer().flushing());
  end_after(std::chrono::microseconds(400));
  EXPECT_FALSE(m_flush.pacer().flushing());
  m_flush.pacer().update(&writer, 4, false);
  EXPECT_GT(m_flush.pacer().hold(writer, m_sim.now_us()).count(), 0);
}

TEST_F(SharedFlushTest, OneAloneNeverWaits) {
  for (size_t flushes = 1; flushes <= 10; ++flushes) {
    m_flush.add(&m_requests[0]);
    EXPECT_EQ(m_flush.begin(m_queue).count(), 0);
    ASSERT_EQ(m_queue.m_submitted.size(), flushes);
    EXPECT_EQ(end_after(std::chrono::microseconds(400)).size(), 1U);
  }
}

}  // namespace
}  // namespace vtkv
