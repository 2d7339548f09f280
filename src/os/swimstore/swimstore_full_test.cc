// SPDX-License-Identifier: LGPL-2.1-or-later
// A store on a full host: what was accepted is carried out, who finds no room waits, and deletes get through.

#include "swimstore/swimstore.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "global/global_context.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/capped_env.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kCapacity = 96 * kMiB;
constexpr unsigned kWriters = 8;
constexpr double kNearFull = 0.85;  // Ceph warns from there
constexpr std::array<uint64_t, 8> kSizes = {100, 4 * kKiB, 8 * kKiB, 12 * kKiB, 64 * kKiB, 300001, kMiB, 4 * kMiB};

// Whose clock can be put forward.
class LaterEnv final : public CappedEnv {
 public:
  using CappedEnv::CappedEnv;
  void pass(std::chrono::microseconds time) { m_passed_us += static_cast<uint64_t>(time.count()); }
  uint64_t now_us() override { return CappedEnv::now_us() + m_passed_us; }

 private:
  std::atomic<uint64_t> m_passed_us{0};
};

class FullStoreTest : public ::testing::Test {
 protected:
  explicit FullStoreTest(uint64_t capacity_bytes = kCapacity) : m_env(vtkv::posix_env(), m_path, capacity_bytes) {}

  struct Pg {
    coll_t cid;
    ObjectStore::CollectionHandle handle;
    unsigned number = 0;
    std::mutex mutex;  // names
    std::vector<ghobject_t> names;
    unsigned made = 0;
  };

  virtual void choose_options() {
    use_small_stores(g_ceph_context, {{"swimstore_reserve_size", "4194304"}, {"swimstore_space_wait_time", "0.5"}});
  }
  void SetUp() override {
    choose_options();
    std::filesystem::remove_all(m_path);
    std::filesystem::create_directory(m_path);
    m_store = std::make_unique<SwimStore>(g_ceph_context, m_path, &m_env);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < kWriters; ++number) {
      Pg& pg = m_pgs[number];
      pg.number = number;
      pg.cid = coll_t(spg_t(pg_t(number, 1)));
      pg.handle = m_store->create_new_collection(pg.cid);
      ObjectStore::Transaction create;
      create.create_collection(pg.cid, 4);
      queue(pg, std::move(create));
    }
  }
  void TearDown() override {
    for (Pg& pg : m_pgs) {
      pg.handle.reset();
    }
    ASSERT_EQ(0, m_store->umount());
    EXPECT_EQ(m_queued, m_committed);
    EXPECT_EQ(0, m_store->fsck(true));
    use_small_stores(g_ceph_context, {{"swimstore_space_wait_time", "5"}});
    std::filesystem::remove_all(m_path);
  }

  void queue(Pg& pg, ObjectStore::Transaction&& transaction) {
    transaction.register_on_commit(new LambdaContext([this](int) { ++m_committed; }));
    ++m_queued;
    EXPECT_EQ(0, m_store->queue_transaction(pg.handle, std::move(transaction)));
  }
  void write(Pg& pg, uint64_t bytes) {
    const ghobject_t name(hobject_t(object_t(std::to_string(pg.made++)), "", CEPH_NOSNAP, pg.number, 1, ""));
    ceph::bufferlist data, value;
    data.append(std::string(bytes, 'd'));
    value.append(std::string(500, 'v'));
    ObjectStore::Transaction transaction;
    transaction.write(pg.cid, name, 0, bytes, data);
    transaction.omap_setkeys(pg.cid, name, std::map<std::string, ceph::bufferlist>{{"key", value}});
    queue(pg, std::move(transaction));
    m_written_bytes += bytes;
    std::lock_guard lock(pg.mutex);
    pg.names.push_back(name);
  }
  // Until `stopped`, each writer mixed sizes to a PG of its own.
  void start_writers(std::function<bool()> stopped, uint64_t bytes = 0) {
    for (Pg& pg : m_pgs) {
      m_threads.emplace_back([this, &pg, stopped, bytes] {
        std::mt19937 random(pg.number);
        while (!stopped()) {
          write(pg, bytes > 0 ? bytes : kSizes[random() % kSizes.size()]);
        }
      });
    }
  }
  void join() {
    for (std::thread& thread : m_threads) {
      thread.join();
    }
    m_threads.clear();
  }
  // Those that wait have room made for them.
  void let_writers_end(size_t keep) {
    wait_until([this, keep] {
      if (somebody_waits()) {
        remove_objects(keep);
      }
      return m_committed == m_queued;
    });
    join();
  }
  std::vector<ghobject_t> take_names(Pg& pg, size_t keep) {
    std::lock_guard lock(pg.mutex);
    const auto end = pg.names.end() - static_cast<ptrdiff_t>(std::min(keep, pg.names.size()));
    std::vector<ghobject_t> names(pg.names.begin(), end);
    pg.names.erase(pg.names.begin(), end);
    return names;
  }
  // Of each PG all but the newest `keep`.
  void remove_objects(size_t keep) {
    for (Pg& pg : m_pgs) {
      for (const ghobject_t& name : take_names(pg, keep)) {
        ObjectStore::Transaction transaction;
        transaction.remove(pg.cid, name);
        queue(pg, std::move(transaction));
      }
    }
  }
  store_statfs_t statfs() {
    store_statfs_t report;
    EXPECT_EQ(0, m_store->statfs(&report));
    return report;
  }
  double used_ratio() { return statfs().get_used_raw_ratio(); }
  bool somebody_waits() {
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    EXPECT_LT(report.get_used_raw_ratio(), 0.97);  // or the OSD drops deletes, too
    return alerts.contains("SWIMSTORE_NO_SPACE");
  }
  static void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  static bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
  // Writers wait, and no longer for more of the reserve.
  void wait_until_nothing_moves() {
    uint64_t before = 0;
    do {
      before = m_committed;
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    } while (m_committed != before || !somebody_waits());
  }
  void remove_at_random(unsigned percent) {
    std::mt19937 random(1);
    for (Pg& pg : m_pgs) {
      for (const ghobject_t& name : take_names(pg, 0)) {
        if (random() % 100 < percent) {
          ObjectStore::Transaction transaction;
          transaction.remove(pg.cid, name);
          queue(pg, std::move(transaction));
        }
      }
    }
  }
  uint64_t waits() const { return m_store->get_perf_counters()->get_tavg_ns(l_swimstore_space_latency).first; }

  const std::string m_path = std::filesystem::absolute(::testing::UnitTest::GetInstance()->current_test_info()->name());
  LaterEnv m_env;
  std::unique_ptr<SwimStore> m_store;
  std::array<Pg, kWriters> m_pgs;
  std::vector<std::thread> m_threads;
  std::atomic<bool> m_stopped{false};
  std::atomic<uint64_t> m_written_bytes{0};
  std::atomic<uint64_t> m_queued{0};
  std::atomic<uint64_t> m_committed{0};
  std::atomic<uint64_t> m_given_up{0};
};

// So large that containers grow with slices of it.
class LargeReserveTest : public FullStoreTest {
 protected:
  LargeReserveTest() : FullStoreTest(256 * kMiB) {}

  // Thousands of objects: with larger memtables, or a checkpoint is written for every few dozen of them.
  void choose_options() override {
    use_small_stores(g_ceph_context, {{"swimstore_reserve_size", "16777216"},
                                      {"swimstore_space_wait_time", "0.5"},
                                      {"swimstore_log_segment_size", "4194304"},
                                      {"swimstore_memtable_size", "2097152"}});
  }
  // Filled to the brim and beyond by objects of that size, of which 60 % go then, chosen at random.
  void fill_and_thin_out(uint64_t bytes) {
    start_writers([this] { return m_stopped.load(); }, bytes);
    wait_until_nothing_moves();
    m_stopped = true;
    remove_at_random(60);
    join();
    wait_until([this] { return m_committed == m_queued; });
  }
  // Writes wait for nothing but a processor that the one who punches has to share, and clients may go on without a
  // warning. Metadata of small objects is more than the reserve within a second here, so that the store is full for a
  // moment, until more is punched.
  void expect_room(uint64_t bytes) {
    constexpr uint64_t kShortNs = 500'000'000;  // of 8000 writes together; one that finds no room waits longer
    const uint64_t waits_before = waits();
    for (unsigned batch = 0; batch < 8; ++batch) {
      ASSERT_TRUE(comes_true([this] { return used_ratio() < kNearFull; })) << used_ratio() << " in batch " << batch;
      for (uint64_t written = 0; written < 4 * kMiB; written += bytes) {
        write(m_pgs[0], bytes);
      }
    }
    EXPECT_LT(waits() - waits_before, kShortNs);
    EXPECT_TRUE(comes_true([this] { return used_ratio() < kNearFull; })) << used_ratio();
  }
};

}  // namespace

// Four times what the store holds, by writers who do not care that it is full.
TEST_F(FullStoreTest, WritesPastTheBrimWaitForDeletes) {
  start_writers([this] { return m_written_bytes >= 4 * kCapacity; });
  std::thread remover([this] {
    while (!m_stopped) {
      if (somebody_waits()) {
        remove_objects(4);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  join();
  m_stopped = true;
  remover.join();
  EXPECT_GT(m_store->get_perf_counters()->get_tavg_ns(l_swimstore_space_latency).first, 0u);
}

// This process is none of an OSD.
TEST_F(FullStoreTest, AToolThatWaitsForRoomInVainEnds) {
  m_store->set_fatal_handler([this](const vtkv::Status& status) {
    EXPECT_TRUE(status.is_no_space()) << status.to_string();
    ++m_given_up;
  });
  start_writers([this] { return m_stopped.load(); });
  wait_until_nothing_moves();
  EXPECT_EQ(m_given_up, 0u);
  m_env.pass(std::chrono::minutes(2));
  EXPECT_TRUE(comes_true([this] { return m_given_up > 0; }));
  m_stopped = true;
  let_writers_end(4);
}

// As an OSD does it: clients stop at the full ratio, and delete everything.
TEST_F(FullStoreTest, FilledAndEmptiedAgainAndAgainItHoldsAsMuch) {
  for (unsigned round = 0; round < 4; ++round) {
    m_stopped = false;
    start_writers([this] { return m_stopped.load(); });
    wait_until([this] { return used_ratio() > 0.95; });
    // What it took in, but has not committed yet, is used and not stored.
    const auto holds_as_much = [this] { return statfs().data_stored > static_cast<int64_t>(kCapacity * 3 / 4); };
    EXPECT_TRUE(comes_true(holds_as_much)) << statfs().data_stored;
    m_stopped = true;
    let_writers_end(8);
    remove_objects(0);
    wait_until([this] { return used_ratio() < 0.15; });  // what the log, the tree and primed slots keep
  }
}

// Hardly a chunk is free as a whole then.
TEST_F(LargeReserveTest, ObjectsRemovedAtRandomMakeRoomInAStoreThatWasFull) {
  fill_and_thin_out(16 * kKiB);
  expect_room(16 * kKiB);
}

// Nor is a run of blocks that were worth a punch.
TEST_F(LargeReserveTest, ObjectsOfOneBlockRemovedAtRandomMakeRoom) {
  fill_and_thin_out(4 * kKiB);
  expect_room(4 * kKiB);
}

TEST_F(FullStoreTest, WhatCannotWaitGoesOnWhenTheStoreIsFull) {
  start_writers([this] { return m_stopped.load(); }, kMiB);
  wait_until([this] { return somebody_waits(); });
  Pg& pg = m_pgs[0];
  std::vector<ghobject_t> names;
  {
    std::lock_guard lock(pg.mutex);
    names = pg.names;
  }
  ASSERT_FALSE(names.empty());
  for (unsigned i = 0; i < 200; ++i) {
    const ghobject_t& name = names[i % names.size()];
    ObjectStore::Transaction truncate, zero, overwrite;
    truncate.truncate(pg.cid, name, kMiB - 1 - i * 1000);
    queue(pg, std::move(truncate));
    zero.zero(pg.cid, name, 1 + i * 1001, 10000);
    queue(pg, std::move(zero));
    ceph::bufferlist data;
    data.append(std::string(4 * kKiB, 'o'));
    overwrite.write(pg.cid, name, i * 4 * kKiB, data.length(), data);
    queue(pg, std::move(overwrite));
  }
  EXPECT_TRUE(somebody_waits());
  m_stopped = true;
  remove_objects(0);
  join();
}

}  // namespace swimstore
