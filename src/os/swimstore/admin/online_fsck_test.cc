// SPDX-License-Identifier: LGPL-2.1-or-later
// A check of a store that is in use, by way of the admin socket's commands.

#include "swimstore/admin/online_fsck.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/Formatter.h"
#include "swimstore/format/extent_record.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/testing/store_workload.h"

namespace swimstore {

namespace {

using namespace std::chrono_literals;

class OnlineFsckTest : public SimStoreFixture {
 protected:
  explicit OnlineFsckTest(bool interleaved = false)
      : SimStoreFixture({{"swimstore_log_segment_size", "262144"},
                         {"swimstore_fsck_online_rate", "300"},
                         {"swimstore_fsck_online_data_rate", "300"},
                         {"swimstore_fsck_online_memory", "0"}},
                        interleaved) {}

  static void set_option(const char* name, const char* value) { use_small_stores(g_ceph_context, {{name, value}}); }
  std::string status() {
    std::string printed;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore fsck status")", &printed));
    return printed;
  }
  void start(bool deep) {
    std::string printed;
    ASSERT_EQ(
        0, admin_command(std::string(R"("prefix": "swimstore fsck", "deep": )") + (deep ? "true" : "false"), &printed))
        << printed;
    EXPECT_TRUE(says("state", "running")) << printed;
  }
  bool says(const std::string& name, const std::string& value) {
    return status().find("\"" + name + "\": \"" + value + "\"") != std::string::npos;
  }
  bool found_errors() { return status().find("\"errors\": 0") == std::string::npos; }
  osd_alert_list_t alerts() {
    store_statfs_t report;
    osd_alert_list_t found;
    EXPECT_EQ(0, m_store->statfs(&report, &found));
    return found;
  }
  void write(const std::string& name, uint64_t count) { write_at(name, 0, count); }
  void overwrite(const std::string& name, uint64_t offset) { write_at(name, offset, 4096); }
  void write_at(const std::string& name, uint64_t offset, uint64_t count) {
    ceph::bufferlist data;
    data.append(std::string(count, 'x'));
    ObjectStore::Transaction txn;
    txn.write(kPg, named(name), offset, count, data);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
  uint64_t number(const std::string& field) {
    const std::string all = status(), name = "\"" + field + "\": ";
    const size_t at = all.find(name);
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size()));
  }
  void finish() {
    for (unsigned i = 0; i < 1000 && !says("state", "done"); ++i) {
      m_env.advance(100ms);
    }
    ASSERT_TRUE(says("state", "done"));
  }
};

}  // namespace

TEST_F(OnlineFsckTest, FindsNothingWhileTransactionsGoOn) {
  set_option("swimstore_fsck_online_rate", "100");
  set_option("swimstore_fsck_online_data_rate", "6400");
  StoreWorkload workload(kPg, {.seed = 3});
  for (unsigned i = 0; i < 200; ++i) {
    m_store->queue_transaction(m_pg, workload.next());
  }
  for (const bool deep : {false, true}) {
    start(deep);
    unsigned steps = 0;
    for (; !says("state", "done"); ++steps) {
      ASSERT_LT(steps, 1000u);
      for (unsigned i = 0; i < 10; ++i) {
        m_store->queue_transaction(m_pg, workload.next());
      }
      m_env.advance(100ms);
    }
    EXPECT_GT(steps, 3u);  // a little at a time
    EXPECT_FALSE(found_errors()) << status();
  }
  EXPECT_FALSE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
}

TEST_F(OnlineFsckTest, DamagedDataIsNamedAndRaisesAnAlert) {
  write("first", 4096);
  write("second", 4096);
  // The first slot of the first object of its size.
  m_env.flip_bits(kPath + "/cubes/0/containers/4K", 100, 1);
  start(false);
  finish();
  EXPECT_FALSE(found_errors());
  start(true);
  finish();
  EXPECT_TRUE(found_errors());
  EXPECT_TRUE(says("class", "data_unreadable")) << status();
  EXPECT_NE(std::string::npos, alerts()["SWIMSTORE_FSCK_FINDINGS"].find("first"));
  EXPECT_NE(std::string::npos, alerts()["SWIMSTORE_FSCK_FINDINGS"].find("'ceph pg repair'"));
  EXPECT_EQ(std::string::npos, alerts()["SWIMSTORE_FSCK_FINDINGS"].find("ceph-swimstore-tool"));

  write("first", 4096);
  start(true);
  finish();
  EXPECT_FALSE(found_errors());
  EXPECT_FALSE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
}

// Until one that looks at as much finds nothing.
TEST_F(OnlineFsckTest, TheAlertOutlivesTheStartOfTheNextCheck) {
  write("first", 4096);
  m_env.flip_bits(kPath + "/cubes/0/containers/4K", 100, 1);
  start(true);
  finish();
  ASSERT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
  start(true);
  EXPECT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
  std::string printed;
  EXPECT_EQ(0, admin_command(R"("prefix": "swimstore fsck stop")", &printed));
  EXPECT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
  start(false);
  finish();
  EXPECT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));  // it read no data
  start(false);
  finish();
  EXPECT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
  write("first", 4096);
  start(true);
  finish();
  EXPECT_FALSE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
}

class OnlineFsckOfCubesTest : public OnlineFsckTest {
 protected:
  OnlineFsckOfCubesTest() { use_small_stores(g_ceph_context, {{"swimstore_cubes", "2"}}); }
  ~OnlineFsckOfCubesTest() override { use_small_stores(g_ceph_context); }
};

TEST_F(OnlineFsckOfCubesTest, TheAlertStandsUntilEachCubeIsFoundWhole) {
  // Each with an object in a group of its own.
  std::map<unsigned, std::pair<coll_t, ObjectStore::CollectionHandle>> groups;
  for (unsigned number = 1; groups.size() < 2; ++number) {
    const coll_t cid(spg_t(pg_t(number, 9)));
    ObjectStore::CollectionHandle handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction txn;
    txn.create_collection(cid, 8);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
    groups.try_emplace(home_of(*m_store, cid), cid, handle);
  }
  const auto write_in = [&](unsigned cube) {
    auto& [cid, handle] = groups.at(cube);
    spg_t pgid;
    cid.is_pg(&pgid);
    ceph::bufferlist data;
    data.append(std::string(4096, 'x'));
    ObjectStore::Transaction txn;
    txn.write(cid, ghobject_t(hobject_t(object_t("one"), "", CEPH_NOSNAP, pgid.ps(), 9, "")), 0, 4096, data);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
    m_env.run_until_idle();
  };
  const auto check_cube = [this](unsigned cube) {
    std::string printed;
    ASSERT_EQ(0, admin_command(fmt::format(R"("prefix": "swimstore fsck", "deep": true, "cube": {})", cube), &printed));
    finish();
  };
  for (const unsigned cube : {1u, 2u}) {
    write_in(cube);
    m_env.flip_bits(fmt::format("{}/cubes/{}/containers/4K", kPath, cube), 100, 1);
    check_cube(cube);
    ASSERT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS")) << status();
  }
  write_in(2);
  check_cube(2);
  EXPECT_TRUE(alerts().contains("SWIMSTORE_FSCK_FINDINGS")) << "cube 1 is as it was";
  write_in(1);
  check_cube(1);
  EXPECT_FALSE(alerts().contains("SWIMSTORE_FSCK_FINDINGS"));
  start(true);  // of all
  finish();
  EXPECT_FALSE(found_errors());
}

// A step that did more than its share is followed by a longer pause.
TEST_F(OnlineFsckTest, ALowRateHoldsItBack) {
  for (unsigned i = 0; i < 10; ++i) {
    write(fmt::format("object {}", i), 1 << 20);
  }
  set_option("swimstore_fsck_online_data_rate", "256");  // one of the objects in a second
  start(true);
  m_env.advance(8s);
  EXPECT_FALSE(says("state", "done"));
  m_env.advance(8s);
  EXPECT_TRUE(says("state", "done"));
}

// A split slot takes far more memory than a whole one.
TEST_F(OnlineFsckTest, WhereSplitSlotsTakeMoreMemoryItBeginsAnewWithMorePasses) {
  set_option("swimstore_fsck_online_memory", "65536");
  for (unsigned i = 0; i < 4; ++i) {
    write(fmt::format("object {}", i), 1 << 20);
    for (uint64_t block = 1; block < 256; block += 2) {
      overwrite(fmt::format("object {}", i), block * 4096);
    }
  }
  start(false);
  EXPECT_NE(std::string::npos, status().find(R"("passes": 1)")) << status();
  finish();
  EXPECT_EQ(std::string::npos, status().find(R"("passes": 1)")) << status();
  EXPECT_FALSE(found_errors()) << status();
  EXPECT_EQ(number("pass"), number("passes"));

  set_option("swimstore_fsck_online_memory", "1500");
  start(false);
  for (unsigned i = 0; i < 1000 && says("state", "running"); ++i) {
    m_env.advance(100ms);
  }
  EXPECT_TRUE(says("state", "failed")) << status();
  EXPECT_NE(std::string::npos, status().find("run ceph-swimstore-tool fsck")) << status();
}

TEST_F(OnlineFsckTest, TheExtentsThatItLoadsAreCountedAsMemory) {
  write("object", 1 << 20);
  m_store->flush_cache(nullptr);
  start(true);
  finish();
  m_store->refresh_perf_counters();
  constexpr uint64_t kShardBytesMin = 100;
  EXPECT_GE(m_store->get_perf_counters()->get(l_swimstore_onode_cache_bytes), (1 << 20) / kShardBytes * kShardBytesMin);
}

TEST_F(OnlineFsckTest, OneAtATimeAndItCanBeStopped) {
  std::string printed;
  start(true);
  EXPECT_EQ(-EBUSY, admin_command(R"("prefix": "swimstore fsck")", &printed));
  EXPECT_NE(std::string::npos, printed.find(R"("error": "a check is under way)")) << printed;
  EXPECT_EQ(0, admin_command(R"("prefix": "swimstore fsck stop")", &printed));
  EXPECT_TRUE(says("state", "stopped"));
  start(false);
  finish();
}

TEST_F(OnlineFsckTest, ItSaysBeforehandWhatItWillTake) {
  for (unsigned i = 0; i < 20; ++i) {
    write(fmt::format("object {}", i), 4096);
  }
  std::string printed;
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore fsck", "deep": true)", &printed));
  for (const char* text : {R"("seconds": 5)", R"("memory_bytes": 10000)", R"("passes": 1)", R"("objects": 20)",
                           R"("slots": 20)", R"("data_blocks": 20)"}) {
    EXPECT_NE(std::string::npos, printed.find(text)) << text << " in " << printed;
  }
  finish();
}

// In several passes: as many objects and slots are found, each once, while transactions go on, and damage is named
// once.
TEST_F(OnlineFsckTest, WithLittleMemoryItGoesOverTheTreeSeveralTimes) {
  set_option("swimstore_fsck_online_memory", "4096");
  StoreWorkload workload(kPg, {.seed = 4});
  for (unsigned i = 0; i < 300; ++i) {
    m_store->queue_transaction(m_pg, workload.next());
  }
  m_env.run_until_idle();
  start(true);
  EXPECT_EQ(std::string::npos, status().find("\"passes\": 1,")) << status();
  for (unsigned steps = 0; !says("state", "done"); ++steps) {
    ASSERT_LT(steps, 3000u);
    m_store->queue_transaction(m_pg, workload.next());
    m_env.advance(100ms);
  }
  EXPECT_FALSE(found_errors()) << status();

  // At rest: each object and slot once, whatever the number of passes.
  start(true);
  finish();
  const uint64_t passes = number("passes"), objects = number("objects_read"), slots = status().rfind("\"slots\": ");
  EXPECT_EQ(number("pass"), passes);
  const std::string in_passes = status().substr(slots, 20);
  set_option("swimstore_fsck_online_memory", "0");
  start(true);
  finish();
  EXPECT_EQ(1u, number("passes"));
  EXPECT_EQ(objects, number("objects_read"));
  EXPECT_EQ(in_passes, status().substr(status().rfind("\"slots\": "), 20));
}

TEST_F(OnlineFsckTest, WithTooLittleMemoryItIsRefused) {
  for (unsigned i = 0; i < 20; ++i) {
    write(fmt::format("object {}", i), 4096);
  }
  set_option("swimstore_fsck_online_memory", "100");
  std::string printed;
  EXPECT_EQ(-EINVAL, admin_command(R"("prefix": "swimstore fsck")", &printed));
  EXPECT_NE(std::string::npos, printed.find("a check of 20 objects and 20 slots would go over the tree 113 times"))
      << printed;
  EXPECT_NE(std::string::npos, printed.find("run ceph-swimstore-tool fsck")) << printed;
  EXPECT_TRUE(says("state", "never run"));
  set_option("swimstore_fsck_online_memory", "0");
  start(false);
  finish();
}

TEST_F(OnlineFsckTest, AnUnknownCubeIsRefused) {
  std::string printed;
  EXPECT_EQ(-EINVAL, admin_command(R"("prefix": "swimstore fsck", "cube": 7)", &printed));
  EXPECT_NE(std::string::npos, printed.find(R"("error": "there is no cube 7)")) << printed;
}

TEST_F(OnlineFsckTest, AnUnmountEndsIt) {
  write("object", 100'000);
  start(true);
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  ASSERT_EQ(0, m_store->mount());
  m_pg = m_store->open_collection(kPg);
  EXPECT_TRUE(says("state", "never run"));
}

TEST_F(OnlineFsckTest, VerifySaysWhetherItFoundDamage) {
  write("an object", 4096);
  std::string printed;
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore flush")", &printed)) << printed;
  EXPECT_NE(std::string::npos, printed.find("\"durable_sequence\": ")) << printed;
  for (const bool damaged : {false, true}) {
    if (damaged) {
      m_env.flip_bits(kPath + "/cubes/0/tree", 40, 0x10);
    }
    ASSERT_EQ(0, admin_command(R"("prefix": "swimstore verify")", &printed));
    EXPECT_NE(std::string::npos, printed.find(R"("state": "running")")) << printed;  // it is not waited for
    EXPECT_EQ(std::string::npos, printed.find("damaged")) << printed;                // nobody knows yet
    EXPECT_FALSE(alerts().contains("SWIMSTORE_VERIFY_FINDINGS"));
    EXPECT_EQ(-EBUSY, admin_command(R"("prefix": "swimstore verify")", &printed));
    m_env.advance(1s);
    ASSERT_EQ(0, admin_command(R"("prefix": "swimstore verify status")", &printed));
    EXPECT_NE(std::string::npos, printed.find(R"("state": "done")")) << printed;
    EXPECT_NE(std::string::npos, printed.find(damaged ? "\"damaged\": true" : "\"damaged\": false")) << printed;
  }
  EXPECT_NE(std::string::npos, alerts()["SWIMSTORE_VERIFY_FINDINGS"].find(kPath + "/cubes/0/tree"));
  m_env.flip_bits(kPath + "/cubes/0/tree", 40, 0x10);
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore verify")", &printed));
  EXPECT_TRUE(alerts().contains("SWIMSTORE_VERIFY_FINDINGS"));  // until it is known that nothing is damaged any more
  m_env.advance(1s);
  EXPECT_FALSE(alerts().contains("SWIMSTORE_VERIFY_FINDINGS"));
}

// One that is under way, in the middle of its reads.
class OnlineVerifyTest : public OnlineFsckTest {
 protected:
  OnlineVerifyTest() : OnlineFsckTest(true) {}

  uint64_t reads() const { return m_env.calls(vtkv::SimCall::read); }
  // So much that a check is in its middle for long, whichever worker's turn it is.
  void fill() {
    for (unsigned i = 0; i < 15000; ++i) {
      write(fmt::format("object {:0>400}", i), 4096);
    }
    m_store->compact();
    m_env.run_until_idle();
  }
  void verify() {
    std::string printed;
    ASSERT_EQ(0, admin_command(R"("prefix": "swimstore verify")", &printed));
  }
  std::string verify_status(const std::string& what = "status") {
    std::string printed;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore verify )" + what + "\"", &printed));
    return printed;
  }
  // Begins one, and returns when it has read so much.
  void begin(uint64_t count) {
    const uint64_t before = reads();
    verify();
    const auto signal = m_env.new_signal();
    vtkv::Mutex lock;
    vtkv::MutexLock waiting(lock);
    signal->wait(waiting, [&] { return reads() >= before + count; });
  }
};

TEST_F(OnlineVerifyTest, ItIsGivenUpByStopAndByAnUnmount) {
  fill();
  uint64_t before = reads();
  verify();
  m_env.advance(1s);
  EXPECT_NE(std::string::npos, verify_status().find(R"("state": "done")"));
  const uint64_t whole = reads() - before;
  ASSERT_GT(whole, 20u);

  begin(whole / 5);
  before = reads();
  const std::string stopped = verify_status("stop");
  EXPECT_NE(std::string::npos, stopped.find(R"("state": "stopped")")) << stopped;
  EXPECT_EQ(std::string::npos, stopped.find("damaged")) << stopped;
  EXPECT_LT(reads() - before, whole / 5);

  begin(whole / 5);
  before = reads();
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  EXPECT_LT(reads() - before, whole / 2);  // its own among them
  ASSERT_EQ(0, m_store->mount());
  m_pg = m_store->open_collection(kPg);
  EXPECT_NE(std::string::npos, verify_status().find(R"("state": "never run")"));
}

TEST_F(OnlineFsckTest, AFlushThatFailsSaysWhyInJson) {
  m_store->set_fatal_handler([](const vtkv::Status&) {});
  write("an object", 4096);
  m_env.fail_nth(vtkv::SimCall::write, 1, vtkv::Status::from_errno(EIO, "cannot write /\xff/tree"), true);
  std::string printed;
  EXPECT_EQ(-EIO, admin_command(R"("prefix": "swimstore flush")", &printed));
  m_env.clear_faults();
  EXPECT_NE(std::string::npos, printed.find("\"error\": \"")) << printed;
  EXPECT_NE(std::string::npos, printed.find("/\\\\xff/tree")) << printed;
}

}  // namespace swimstore
