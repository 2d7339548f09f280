// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_throttle.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>

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

  std::function<ContainerStatistics()> statistics() {
    return [this] { return m_containers->statistics(); };
  }

  // A write of new data. False: there is no room.
  bool write(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    if (!m_containers->allocate(bytes, &slots).ok()) {
      return false;
    }
    m_containers->apply(++m_sequence, {blocks_of(slots), {}});
    m_owned.push_back(slots);
    return true;
  }
  // Overwrites the oldest: what held it is free when the next one is durable.
  void overwrite(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(m_containers->allocate(bytes, &slots).ok());
    m_containers->apply(++m_sequence, {blocks_of(slots), blocks_of(m_owned.front())});
    m_owned.pop_front();
    m_owned.push_back(slots);
    m_containers->set_reuse_horizon(m_sequence - 1);
  }
  static std::vector<SlotBlocks> blocks_of(const std::vector<AllocatedSlot>& slots) {
    std::vector<SlotBlocks> blocks;
    for (const AllocatedSlot& slot : slots) {
      blocks.push_back(slot.blocks());
    }
    return blocks;
  }
  SpaceLeft left() const { return space_left(m_containers->statistics()); }
  // Nearly full: a twentieth is left.
  void fill() {
    m_env.set_capacity(m_env.allocated_bytes() + 2048 * kMiB);
    while (left().left_bytes * 20 > left().capacity_bytes) {
      ASSERT_TRUE(write(4 * kMiB));
    }
  }
  // How long a writer waits who writes so much at full speed.
  std::chrono::microseconds delay_of(SpaceThrottle& throttle, uint64_t bytes, const std::function<void()>& write_one) {
    std::chrono::microseconds waited{0};
    for (uint64_t written = 0; written < bytes; written += 4 * kMiB) {
      const auto delay = throttle.delay_for(4 * kMiB);
      waited += delay;
      m_env.advance(delay + kWriteTime);
      write_one();
    }
    return waited;
  }

  static constexpr std::chrono::milliseconds kWriteTime{10};

  vtkv::SimEnv m_env{{.seed = 1, .record = false}};
  std::unique_ptr<ContainerSet> m_containers;
  vtkv::SequenceNumber m_sequence = 0;
  std::deque<std::vector<AllocatedSlot>> m_owned;
};

}  // namespace

TEST_F(SpaceThrottleTest, FarFromFullNobodyWaits) {
  SpaceThrottle throttle(&m_env, statistics(), 10);
  EXPECT_EQ(0, throttle.delay_for(4 * kMiB).count());
}

TEST_F(SpaceThrottleTest, WithLittleLeftALargeWriteWaitsAndADeleteDoesNot) {
  m_env.set_capacity(m_env.allocated_bytes() + 2 * kMiB);
  while (write(4 * kMiB)) {
  }
  SpaceThrottle throttle(&m_env, statistics(), 10);
  EXPECT_GT(throttle.delay_for(4 * kMiB).count(), 100000);
  EXPECT_EQ(0, throttle.delay_for(600).count());
}

TEST_F(SpaceThrottleTest, ManyWritersTogetherAreAsSlowAsOne) {
  fill();
  SpaceThrottle throttle(&m_env, statistics(), 10);
  EXPECT_EQ(0, throttle.delay_for(4096).count());
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(write(4 * kMiB));
  }
  m_env.advance(std::chrono::milliseconds(100));
  const auto first = throttle.delay_for(4096);
  EXPECT_GT(first.count(), 0);
  EXPECT_GT(throttle.delay_for(4096).count(), first.count());
}

// They use up nothing.
TEST_F(SpaceThrottleTest, OverwritesOfANearlyFullStoreAreNotSlowed) {
  fill();
  SpaceThrottle throttle(&m_env, statistics(), 10);
  EXPECT_EQ(0, delay_of(throttle, 512 * kMiB, [this] { overwrite(4 * kMiB); }).count());
}

TEST_F(SpaceThrottleTest, NewDataIsSlowedAfterOverwritesToo) {
  fill();
  SpaceThrottle throttle(&m_env, statistics(), 10);
  delay_of(throttle, 256 * kMiB, [this] { overwrite(4 * kMiB); });
  // Two thirds of what is left: e^-1.1.
  const auto waited = delay_of(throttle, left().left_bytes / 3 * 2, [this] { ASSERT_TRUE(write(4 * kMiB)); });
  EXPECT_GT(waited.count(), 8000000);
  EXPECT_LT(waited.count(), 16000000);
}

TEST_F(SpaceThrottleTest, OverwritesAmongNewDataCostNoSpeedForLong) {
  fill();
  SpaceThrottle throttle(&m_env, statistics(), 10);
  while (throttle.delay_for(4 * kMiB).count() == 0) {
    ASSERT_TRUE(write(4 * kMiB));
    m_env.advance(kWriteTime);
  }
  delay_of(throttle, 16 * kMiB, [this] { overwrite(4 * kMiB); });
  EXPECT_EQ(0, delay_of(throttle, 64 * kMiB, [this] { overwrite(4 * kMiB); }).count());
}

TEST_F(SpaceThrottleTest, ItCanBeSwitchedOff) {
  m_env.set_capacity(m_env.allocated_bytes());
  SpaceThrottle throttle(&m_env, statistics(), 0);
  EXPECT_EQ(0, throttle.delay_for(4 * kMiB).count());
}

// A large write is served by many small ones where need be.
TEST(SpaceLeftTest, AllThatNobodyOwnsIsRoom) {
  ContainerStatistics statistics;
  statistics.file_bytes = 5 * kMiB;
  statistics.owned_bytes = 3 * kMiB;
  EXPECT_EQ(2 * kMiB, space_left(statistics).left_bytes);
  statistics.kept_bytes = kMiB;
  EXPECT_EQ(kMiB, space_left(statistics).left_bytes);
  statistics.growable_bytes = 65 * kMiB;  // too little to grow by, but for one
  EXPECT_EQ(2 * kMiB, space_left(statistics).left_bytes);
}

}  // namespace swimstore
