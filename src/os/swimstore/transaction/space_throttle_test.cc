// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_throttle.h"

#include <gtest/gtest.h>

#include "vtkv/testing/sim_env.h"

namespace swimstore {

namespace {

constexpr uint64_t kMiB = 1u << 20;

class SpaceThrottleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ContainerOptions options = {.chunk_bytes = 4 * kMiB, .primed_ahead_bytes = 0, .reserve_bytes = kMiB};
    ASSERT_TRUE(m_env.create_directory("/containers").ok());
    ASSERT_TRUE(ContainerSet::create(&m_env, "/containers", options).ok());
    ASSERT_TRUE(ContainerSet::open(&m_env, "/containers", options, &m_containers).ok());
    ASSERT_TRUE(m_containers->finish_recovery().ok());
  }

  vtkv::SimEnv m_env{{.seed = 1, .record = false}};
  std::unique_ptr<ContainerSet> m_containers;
};

}  // namespace

TEST_F(SpaceThrottleTest, FarFromFullNobodyWaits) {
  SpaceThrottle throttle(&m_env, *m_containers, 10);
  EXPECT_EQ(0, throttle.delay_for(4 * kMiB).count());
}

TEST_F(SpaceThrottleTest, WithLittleLeftALargeWriteWaitsAndADeleteDoesNot) {
  m_env.set_capacity(m_env.allocated_bytes() + 2 * kMiB);
  std::vector<AllocatedSlot> slots;
  while (m_containers->allocate(4 * kMiB, &slots).ok()) {
  }
  SpaceThrottle throttle(&m_env, *m_containers, 10);
  EXPECT_GT(throttle.delay_for(4 * kMiB).count(), 100000);
  EXPECT_EQ(0, throttle.delay_for(600).count());
}

TEST_F(SpaceThrottleTest, ManyWritersTogetherAreAsSlowAsOne) {
  m_env.set_capacity(m_env.allocated_bytes() + 100 * kMiB);
  std::vector<AllocatedSlot> slots;
  while (m_containers->statistics().growable_bytes > 70 * kMiB) {
    ASSERT_TRUE(m_containers->allocate(4 * kMiB, &slots).ok());
  }
  SpaceThrottle throttle(&m_env, *m_containers, 10);
  const auto first = throttle.delay_for(4096);
  EXPECT_GT(throttle.delay_for(4096), first);
}

TEST_F(SpaceThrottleTest, ItCanBeSwitchedOff) {
  m_env.set_capacity(m_env.allocated_bytes());
  SpaceThrottle throttle(&m_env, *m_containers, 0);
  EXPECT_EQ(0, throttle.delay_for(4 * kMiB).count());
}

// A large write is served by many small ones where need be.
TEST(SpaceLeftTest, SmallFreeSlotsAreRoomToo) {
  ContainerStatistics statistics;
  statistics.classes[0].free = 256;
  EXPECT_EQ(kMiB, space_left(statistics).left_bytes);
  statistics.classes[kSizeClasses - 1].split_free_blocks = 256;
  EXPECT_EQ(2 * kMiB, space_left(statistics).left_bytes);
  statistics.kept_bytes = kMiB;
  EXPECT_EQ(kMiB, space_left(statistics).left_bytes);
}

}  // namespace swimstore
