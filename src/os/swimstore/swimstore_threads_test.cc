// SPDX-License-Identifier: LGPL-2.1-or-later
// Many threads on a store on the host: what each PG's writer queued is there, in order, whatever readers, checks and
// reports go on.

#include "swimstore/swimstore.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "common/Cond.h"
#include "global/global_context.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"

namespace swimstore {

namespace {

constexpr unsigned kPgs = 3;
constexpr unsigned kPgBits = 2;
constexpr unsigned kTransactions = 150;
constexpr int64_t kPool = 1;

class StoreThreadsTest : public ::testing::Test {
 protected:
  struct Pg {
    coll_t cid;
    ObjectStore::CollectionHandle handle;
    std::unique_ptr<StoreWorkload> workload;
    // Each transaction of the writer puts its number under both; neither is the workload's.
    ghobject_t first, last;
    std::atomic<unsigned> committed{0};  // transactions, in order
  };

  void SetUp() override {
    use_small_stores(g_ceph_context,
                     {{"swimstore_fsck_online_rate", "100000"},
                      {"swimstore_callback_threads", "4"},
                      {"swimstore_defragment_rate", "4294967296"},
                      {"swimstore_slow_ops_warn_threshold", "0"}});  // how fast the machine is, is no matter
    m_path = std::filesystem::absolute("store");
    std::filesystem::remove_all(m_path);  // of another test
    std::filesystem::create_directory(m_path);
    m_store = std::make_unique<SwimStore>(g_ceph_context, m_path);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < kPgs; ++number) {
      Pg& pg = m_pgs[number];
      pg.cid = coll_t(spg_t(pg_t(number, kPool)));
      pg.first = named("first", number);
      pg.last = named("last", number);
      pg.workload = std::make_unique<StoreWorkload>(pg.cid, WorkloadOptions{.seed = number + 1});
      pg.handle = m_store->create_new_collection(pg.cid);
      ObjectStore::Transaction create;
      create.create_collection(pg.cid, kPgBits);
      put_number(&create, pg, 0);
      ASSERT_EQ(0, m_store->queue_transaction(pg.handle, std::move(create)));
    }
  }
  void TearDown() override {
    close_collections();
    ASSERT_EQ(0, m_store->umount());
  }
  void close_collections() {
    for (Pg& pg : m_pgs) {
      pg.handle.reset();
    }
  }
  void remount() {
    close_collections();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
    ASSERT_EQ(0, m_store->mount());
    for (Pg& pg : m_pgs) {
      pg.handle = m_store->open_collection(pg.cid);
      ASSERT_TRUE(pg.handle);
    }
  }

  static ghobject_t named(const std::string& name, unsigned pg) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, pg, kPool, ""));
  }
  static void put_number(ObjectStore::Transaction* transaction, const Pg& pg, unsigned number) {
    ceph::bufferlist value;
    value.append(std::to_string(number));
    transaction->touch(pg.cid, pg.first);
    transaction->setattr(pg.cid, pg.first, "number", value);
    transaction->truncate(pg.cid, pg.last, 0);
    transaction->write(pg.cid, pg.last, 0, value.length(), value);
    transaction->omap_setkeys(pg.cid, pg.last, {{"number", value}});
  }

  void write(Pg& pg) {
    for (unsigned number = 1; number <= kTransactions; ++number) {
      ObjectStore::Transaction transaction = pg.workload->next();
      put_number(&transaction, pg, number);
      transaction.register_on_commit(new LambdaContext([&pg, number](int) { EXPECT_EQ(number, ++pg.committed); }));
      ASSERT_EQ(0, m_store->queue_transaction(pg.handle, std::move(transaction)));
      if (number % 50 == 0) {
        C_SaferCond flushed;
        if (!pg.handle->flush_commit(&flushed)) {
          flushed.wait();
        }
      }
    }
  }
  // Nobody sees an older state after a newer one, in whatever way it is read.
  void read(Pg& pg) {
    ceph::bufferptr attr;
    ASSERT_EQ(0, m_store->getattr(pg.handle, pg.first, "number", attr));
    std::map<std::string, ceph::bufferlist> values;
    ASSERT_EQ(0, m_store->omap_get_values(pg.handle, pg.last, {"number"}, &values));
    ceph::bufferlist data;
    ASSERT_LT(0, m_store->read(pg.handle, pg.last, 0, 0, data));
    const int in_attr = std::stoi(std::string(attr.c_str(), attr.length()));
    const int in_omap = std::stoi(values["number"].to_str());
    EXPECT_LE(in_attr, in_omap);
    EXPECT_LE(in_omap, std::stoi(data.to_str()));
    std::string gone;  // an object of the listing may be, by now
    read_collection(*m_store, pg.handle, &gone);
  }
  // Of two collections: both are locked, in one order.
  void touch_both(Pg& one, Pg& other, unsigned number) {
    ObjectStore::Transaction transaction;
    ceph::bufferlist value;
    value.append("x");
    transaction.setattr(one.cid, one.first, "beside", value);
    transaction.setattr(other.cid, other.first, "beside", value);
    ASSERT_EQ(0, m_store->queue_transaction(number % 2 == 0 ? one.handle : other.handle, std::move(transaction)));
  }
  std::string command(const std::string& arguments) {
    std::string printed;
    admin_command(R"("prefix": "swimstore )" + arguments, &printed);
    return printed;
  }
  void report() {
    store_statfs_t usage;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&usage, &alerts));
    for (const char* const of_the_host : {"SWIMSTORE_UNSAFE_HOST", "SWIMSTORE_BLOCKING_IO"}) {
      alerts.erase(of_the_host);  // the tests run on any
    }
    EXPECT_TRUE(alerts.empty()) << alerts.begin()->second;
    bool per_pool_omap = false;
    EXPECT_EQ(0, m_store->pool_statfs(kPool, &usage, &per_pool_omap));
    m_store->get_cur_stats();
    m_store->refresh_perf_counters();
    std::vector<coll_t> collections;
    EXPECT_EQ(0, m_store->list_collections(collections));
    EXPECT_EQ(kPgs, collections.size());
  }
  void look_after(unsigned round) {
    report();
    command(R"(fsck", "deep": true)");
    EXPECT_NE(std::string::npos, command(R"(fsck status")").find(R"("errors": 0)"));
    EXPECT_EQ(std::string::npos, command(R"(defragment status")").find(R"("failed")"));
    command(round % 2 == 0 ? R"(defragment")" : R"(defragment", "metadata": true)");
    if (round % 3 == 0) {
      EXPECT_EQ(0, m_store->flush_cache());
      EXPECT_EQ(0, m_store->compact());
    }
    if (round % 4 == 0) {
      command(R"(fsck stop")");
    }
  }
  void compare() {
    for (Pg& pg : m_pgs) {
      std::string error;
      ModelCollection found = read_collection(*m_store, pg.handle, &error);
      ASSERT_EQ("", error);
      EXPECT_EQ(std::to_string(kTransactions), found[pg.last].data);
      found.erase(pg.first);
      found.erase(pg.last);
      EXPECT_EQ("", difference(pg.workload->model(), found));
    }
  }

  std::string m_path;
  std::unique_ptr<SwimStore> m_store;
  std::array<Pg, kPgs> m_pgs;
};

}  // namespace

// An admin command writes its file while the map's thread writes another.
TEST_F(StoreThreadsTest, SmallFilesOfSeveralThreadsAreEachTheirOwn) {
  const std::array<std::string, 3> keys{"osd_key", "require_osd_release", "crush_device_class"};
  std::vector<std::thread> writers;
  std::atomic<unsigned> wrong{0};
  for (const std::string& key : keys) {
    writers.emplace_back([this, &wrong, key] {
      for (unsigned i = 0; i < 100; ++i) {
        std::string value;
        const std::string written = key + std::string(i, 'x');
        wrong += m_store->write_meta(key, written) != 0 || m_store->read_meta(key, &value) != 0 || value != written;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_F(StoreThreadsTest, EveryPgHoldsWhatItsWriterQueuedWhateverElseGoesOn) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers, others;
  for (Pg& pg : m_pgs) {
    writers.emplace_back([this, &pg] { write(pg); });
  }
  for (unsigned reader = 0; reader < 2; ++reader) {
    others.emplace_back([&, reader] {
      for (unsigned i = reader; !stop; ++i) {
        read(m_pgs[i % kPgs]);
        touch_both(m_pgs[i % kPgs], m_pgs[(i + 1) % kPgs], i);
      }
    });
  }
  others.emplace_back([&] {
    for (unsigned round = 0; !stop; ++round) {
      look_after(round);
    }
  });
  for (std::thread& writer : writers) {
    writer.join();
  }
  stop = true;
  for (std::thread& other : others) {
    other.join();
  }
  compare();
  command(R"(defragment")");  // an unmount ends it
  remount();
  for (const Pg& pg : m_pgs) {
    EXPECT_EQ(kTransactions, pg.committed);
  }
  compare();
}

// As an OSD's do that goes on with what it is about: each of two groups goes on with the other, some after a while.
TEST_F(StoreThreadsTest, AnUnmountWaitsForWhatCallbacksQueue) {
  constexpr unsigned kLinks = 50;
  std::array<ObjectStore::CollectionHandle, 2> handles{m_pgs[0].handle, m_pgs[1].handle};
  std::atomic<unsigned> told{0};
  const std::function<void(unsigned)> queue = [&](unsigned link) {
    ObjectStore::Transaction transaction;
    put_number(&transaction, m_pgs[link % 2], link);
    transaction.register_on_commit(new LambdaContext([&, link](int) {
      std::this_thread::sleep_for(std::chrono::microseconds(link % 3 * 300));
      EXPECT_EQ(link, ++told);
      if (link < kLinks) {
        queue(link + 1);
      }
    }));
    EXPECT_EQ(0, m_store->queue_transaction(handles[link % 2], std::move(transaction)));
  };
  for (unsigned round = 0; round < 5; ++round) {
    told = 0;
    queue(1);
    remount();
    ASSERT_EQ(kLinks, told);
    for (unsigned number : {0u, 1u}) {
      ceph::bufferlist data;
      ASSERT_LT(0, m_store->read(m_pgs[number].handle, m_pgs[number].last, 0, 0, data));
      EXPECT_EQ(std::to_string(kLinks - (kLinks + number) % 2), data.to_str());
      handles[number] = m_pgs[number].handle;
    }
  }
}

}  // namespace swimstore
