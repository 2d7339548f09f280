// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "common/ceph_context.h"
#include "global/global_context.h"
#include "swimstore/testing/capped_env.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/env/posix/posix_env.h"

namespace swimstore {

namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kPatience_us = 300 * 1000;

// Holds up who asks for its free space.
class HangingEnv final : public CappedEnv {
 public:
  using CappedEnv::CappedEnv;

  void hang() { m_hangs = true; }
  void go_on() { m_hangs = false; }
  void wait_until_somebody_asks() const { m_asked.wait(false); }

  vtkv::Status file_system_info(const std::string& path, vtkv::FileSystemInfo* info) override {
    while (m_hangs) {
      m_asked = true;
      m_asked.notify_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return CappedEnv::file_system_info(path, info);
  }

 private:
  std::atomic<bool> m_hangs{false};
  std::atomic<bool> m_asked{false};
};

class SpaceGateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context, {{"swimstore_space_wait_time", "0.3"}});
    std::filesystem::remove_all(m_path);
    std::filesystem::create_directory(m_path);
    // Nothing of its own happens: no worker asks the host.
    const ContainerOptions options = {
        .chunk_bytes = 4 * kMiB, .primed_ahead_bytes = 0, .reserve_bytes = 16 * kMiB, .maintenance = false};
    ASSERT_TRUE(ContainerSet::create(&m_env, m_path + "/containers", options).ok());
    ASSERT_TRUE(ContainerSet::open(&m_env, m_path + "/containers", options, &m_containers).ok());
    ASSERT_TRUE(m_containers->finish_recovery().ok());
    m_gate = std::make_unique<SpaceGate>(
        g_ceph_context, &m_env, [this] { return m_containers->statistics(); },
        [this](uint64_t bytes) { m_given_up.push_back(bytes); });
    while (m_containers->promise(kMiB, Urgency::usual)) {
    }
    m_promised_bytes = m_containers->statistics().promised_bytes;
  }
  void TearDown() override {
    m_gate.reset();
    m_containers.reset();
    use_small_stores(g_ceph_context, {{"swimstore_space_wait_time", "5"}});
    std::filesystem::remove_all(m_path);
  }
  std::future<uint64_t> enter(uint64_t throttled_us) {
    return std::async(std::launch::async,
                      [this, throttled_us] { return m_gate->enter_us(*m_containers, m_need, throttled_us, nullptr); });
  }

  const std::string m_path = std::filesystem::absolute(::testing::UnitTest::GetInstance()->current_test_info()->name());
  HangingEnv m_env{vtkv::posix_env(), m_path, 256 * kMiB};
  std::unique_ptr<ContainerSet> m_containers;
  std::unique_ptr<SpaceGate> m_gate;
  const SpaceNeed m_need{kMiB, true};
  uint64_t m_promised_bytes = 0;
  std::vector<uint64_t> m_given_up;  // of one who waits
};

}  // namespace

// statfs does.
TEST_F(SpaceGateTest, WhoAsksWhoWaitsDoesNotWaitForTheHost) {
  std::future<uint64_t> waiter = enter(0);
  while (m_gate->waiting() == 0) {
    std::this_thread::yield();
  }
  m_env.hang();
  m_env.wait_until_somebody_asks();
  std::future<uint64_t> report = std::async(std::launch::async, [this] { return m_gate->oldest_us(); });
  EXPECT_EQ(report.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  m_env.go_on();
  EXPECT_GT(report.get(), 0u);
  EXPECT_GT(waiter.get(), 0u);
}

TEST_F(SpaceGateTest, WhoFindsNoRoomWaitsAsLongAsItsPatienceAndThenGetsWhatOthersLeave) {
  EXPECT_GE(enter(0).get(), kPatience_us);
  EXPECT_EQ(m_containers->statistics().promised_bytes, m_promised_bytes + kMiB);
}

TEST_F(SpaceGateTest, WhoWaitsForLongGivesUpOnceAndGoesOnWhenThereIsRoom) {
  while (m_containers->promise(kMiB, Urgency::late)) {
  }
  std::future<uint64_t> waiter = enter(SpaceGate::kGiveUp_us - kPatience_us);
  EXPECT_EQ(waiter.wait_for(std::chrono::microseconds(4 * kPatience_us)), std::future_status::timeout);
  m_containers->give_back(kMiB);
  EXPECT_GE(waiter.get(), 2 * kPatience_us);
  EXPECT_EQ(m_given_up, std::vector<uint64_t>{kMiB});
}

TEST_F(SpaceGateTest, TimeInTheThrottleCountsAsWaited) {
  EXPECT_LT(enter(kPatience_us).get(), kPatience_us);
  EXPECT_EQ(m_containers->statistics().promised_bytes, m_promised_bytes + kMiB);
}

}  // namespace swimstore
