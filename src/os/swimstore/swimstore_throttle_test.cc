// SPDX-License-Identifier: LGPL-2.1-or-later
// The device of a store stops under load: what the store takes in stays bounded, whoever waits is not taken for hung,
// and all goes on with the device.

#include "swimstore/swimstore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "common/HeartbeatMap.h"
#include "global/global_context.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/stoppable_env.h"

namespace swimstore {

namespace {

constexpr unsigned kWriters = 16;
constexpr unsigned kWritesOfEach = 24;
constexpr uint64_t kWriteBytes = 256u << 10;
constexpr uint64_t kLimit = 2u << 20;
// Beside its data a transaction of these counts for what it is itself.
constexpr uint64_t kWithItself = 16u << 10;

class StoppedDeviceTest : public ::testing::Test {
 protected:
  struct Pg {
    coll_t cid;
    ObjectStore::CollectionHandle handle;
  };

  void SetUp() override {
    use_small_stores(g_ceph_context);
    set_limit(kLimit);
    const std::string path = std::filesystem::absolute(::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
    m_store = std::make_unique<SwimStore>(g_ceph_context, path, &m_env);
    m_store->set_fatal_handler([](const vtkv::Status&) {});
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < kWriters; ++number) {
      Pg& pg = m_pgs.emplace_back();
      pg.cid = coll_t(spg_t(pg_t(number, 1)));
      pg.handle = m_store->create_new_collection(pg.cid);
      ObjectStore::Transaction create;
      create.create_collection(pg.cid, 4);
      ASSERT_EQ(0, m_store->queue_transaction(pg.handle, std::move(create)));
    }
  }
  void TearDown() override {
    m_env.go_on();
    join();
    m_pgs.clear();
    ASSERT_EQ(0, m_store->umount());
    set_limit(64u << 20);
    std::filesystem::remove_all(
        std::filesystem::absolute(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  }

  static void set_limit(uint64_t bytes) {
    g_ceph_context->_conf.set_val_or_die("swimstore_throttle_bytes", std::to_string(bytes));
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  static ghobject_t named(unsigned pg, unsigned number) {
    return ghobject_t(hobject_t(object_t(std::to_string(number)), "", CEPH_NOSNAP, pg, 1, ""));
  }
  uint64_t counter(int index) {
    m_store->refresh_perf_counters();
    return m_store->get_perf_counters()->get(index);
  }

  void write(unsigned number, unsigned writes) {
    heartbeat_handle_d* const heartbeat = g_ceph_context->get_heartbeat_map()->add_worker("writer", pthread_self());
    {
      ThreadPool::TPHandle handle(g_ceph_context, heartbeat, ceph::make_timespan(3600), ceph::make_timespan(0));
      handle.reset_tp_timeout();
      m_heartbeats[number] = heartbeat;
      for (unsigned i = 0; i < writes; ++i) {
        ceph::bufferlist data;
        data.append(std::string(kWriteBytes, static_cast<char>('a' + i)));
        std::vector<ObjectStore::Transaction> transactions(1);
        transactions[0].write(m_pgs[number].cid, named(number, i), 0, data.length(), data);
        transactions[0].register_on_commit(new LambdaContext([this](int) { ++m_committed; }));
        EXPECT_EQ(0, m_store->queue_transactions(m_pgs[number].handle, transactions, TrackedOpRef(), &handle));
        ++m_queued;
      }
      m_heartbeats[number] = nullptr;
    }
    g_ceph_context->get_heartbeat_map()->remove_worker(heartbeat);
  }
  void start_writers() {
    for (unsigned number = 0; number < kWriters; ++number) {
      m_threads.emplace_back([this, number] { write(number, kWritesOfEach); });
    }
  }
  void join() {
    for (std::thread& thread : m_threads) {
      thread.join();
    }
    m_threads.clear();
  }
  static bool waits(const heartbeat_handle_d* heartbeat) {
    return heartbeat != nullptr && heartbeat->timeout.load() == ceph::coarse_mono_clock::zero();
  }
  unsigned waiting() const {
    return std::count_if(m_heartbeats.begin(), m_heartbeats.end(), [](const auto& it) { return waits(it); });
  }
  static void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  StoppableEnv m_env{vtkv::posix_env()};
  std::unique_ptr<SwimStore> m_store;
  std::vector<Pg> m_pgs;
  std::vector<std::thread> m_threads;
  std::array<std::atomic<heartbeat_handle_d*>, kWriters> m_heartbeats{};
  std::atomic<unsigned> m_queued{0};
  std::atomic<unsigned> m_committed{0};
};

}  // namespace

TEST_F(StoppedDeviceTest, WhatIsTakenInStaysBoundedAndAllGoesOn) {
  m_env.stop();
  start_writers();
  wait_until([this] { return waiting() == kWriters; });
  EXPECT_EQ(0u, m_committed);
  EXPECT_EQ(kLimit / (kWriteBytes + kWithItself), m_queued);
  EXPECT_LE(counter(l_swimstore_throttle_bytes), kLimit);
  EXPECT_GT(counter(l_swimstore_throttle_bytes), kLimit / 2);
  wait_until([this] { return m_env.held() > 0; });

  m_env.go_on();
  join();
  wait_until([this] { return m_committed == kWriters * kWritesOfEach; });
  wait_until([this] { return counter(l_swimstore_throttle_bytes) == 0; });
  EXPECT_GE(m_store->get_perf_counters()->get_tavg_ns(l_swimstore_throttle_latency).first, kWriters);
  for (unsigned number = 0; number < kWriters; ++number) {
    ceph::bufferlist data;
    EXPECT_EQ(static_cast<int>(kWriteBytes),
              m_store->read(m_pgs[number].handle, named(number, kWritesOfEach - 1), 0, 0, data));
  }
}

TEST_F(StoppedDeviceTest, AHigherLimitTakesEffectAtOnce) {
  m_env.stop();
  start_writers();
  wait_until([this] { return waiting() == kWriters; });
  const unsigned before = m_queued;
  set_limit(2 * kLimit);
  wait_until([&] { return m_queued >= 2 * before && waiting() == kWriters; });
  EXPECT_LE(counter(l_swimstore_throttle_bytes), 2 * kLimit);
}

// The test's other half: it is the limit that bounds, nothing else.
TEST_F(StoppedDeviceTest, WithoutALimitEverythingIsTakenIn) {
  set_limit(0);
  m_env.stop();
  start_writers();
  join();
  EXPECT_EQ(kWriters * kWritesOfEach, m_queued);
  EXPECT_EQ(0u, m_committed);
  EXPECT_GT(counter(l_swimstore_throttle_bytes), kWriters * kWritesOfEach * kWriteBytes);
}

TEST_F(StoppedDeviceTest, AStoreThatFailsLetsThoseGoWhoWait) {
  m_env.stop();
  start_writers();
  wait_until([this] { return waiting() == kWriters; });
  m_env.fail();
  join();
  EXPECT_EQ(kWriters * kWritesOfEach, m_queued);
  EXPECT_EQ(0u, m_committed);
  wait_until([this] { return counter(l_swimstore_throttle_bytes) == 0; });
}

TEST_F(StoppedDeviceTest, WhatIsLargerThanTheLimitGoesWhenNothingElseIsUnderWay) {
  set_limit(kWriteBytes / 2);
  write(0, 3);
  wait_until([this] { return m_committed == 3; });
}

}  // namespace swimstore
