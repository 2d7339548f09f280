// SPDX-License-Identifier: LGPL-2.1-or-later
// Every counter that the store registers is one that somebody moves.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/perf_counters_collection.h"
#include "swimstore/admin/admin_commands.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "vtkv/program_version.h"

namespace swimstore {
namespace {

using namespace std::chrono_literals;

// Those that this workload does not reach, and the tests that do.
const std::set<std::string> kElsewhere = {
    "throttle_latency",  // waits of several threads: swimstore_throttle_test
    "space_latency",     // a full host: swimstore_full_test
    "space_throttle_latency",  // the same: space_throttle_test has what it waits, swimstore_full_test that it is used
    "relaxed_transactions",  // of pools that an option names: relaxed_pools_test
    "primed_bytes",  // where the fragments of split slots do not suffice: container_set_test
    "punched_bytes",  // chunks given back to a host that lacks space: container_punching_test
};

class CountersTest : public SimStoreFixture {
 protected:
  // Whatever a test before this one has left.
  CountersTest() : SimStoreFixture({{"swimstore_cache_meta_ratio", "0.45"}, {"swimstore_cache_kv_ratio", "0.35"}}) {}
  void TearDown() override {
    set_age("5");
    SimStoreFixture::TearDown();
  }
  static void set_age(const char* seconds) {
    g_ceph_context->_conf.set_val_or_die("swimstore_log_op_age", seconds);
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  static bool is_zero(const PerfCounters::perf_counter_data_any_d& counter) {
    if ((counter.type & PERFCOUNTER_HISTOGRAM) == 0) {
      return counter.type & PERFCOUNTER_LONGRUNAVG ? counter.avgcount == 0 : counter.u64 == 0;
    }
    for (int64_t x = 0; x < 24; ++x) {
      for (int64_t y = 0; y < 20; ++y) {
        if (counter.histogram->read_bucket(x, y) > 0) {
          return false;
        }
      }
    }
    return true;
  }
  // Remembers which are not zero now.
  void look() {
    m_store->refresh_perf_counters();
    g_ceph_context->get_perfcounters_collection()->with_counters([this](const auto& by_path) {
      for (const auto& [path, ref] : by_path) {
        if (path.starts_with("swimstore.")) {
          bool& moved = m_moved[path.substr(path.find('.') + 1)];
          moved = moved || !is_zero(*ref.data);
        }
      }
    });
  }
  void queue(ObjectStore::Transaction&& txn) {
    m_store->queue_transaction(m_pg, std::move(txn));
    look();  // while it is under way
    m_env.run_until_idle();
  }
  void write_random(const std::string& name, uint64_t length) {
    std::mt19937 random;
    std::string bytes(length, '\0');
    std::generate(bytes.begin(), bytes.end(), [&random] { return static_cast<char>(random()); });
    ceph::bufferlist data;
    data.append(bytes);
    ObjectStore::Transaction txn;
    txn.write(kPg, named(name), 0, length, data);
    queue(std::move(txn));
  }
  void write(const std::string& name, uint64_t offset, uint64_t length) {
    ceph::bufferlist data;
    data.append(std::string(length, static_cast<char>('a' + offset % 7)));
    ObjectStore::Transaction txn;
    txn.write(kPg, named(name), offset, length, data);
    queue(std::move(txn));
  }
  // The onode, so that nothing but data is read later.
  void load(const std::string& name) {
    struct stat st;
    EXPECT_EQ(0, m_store->stat(m_pg, named(name), &st));
  }
  int read(const std::string& name) {
    ceph::bufferlist data;
    return m_store->read(m_pg, named(name), 0, 0, data);
  }

  std::map<std::string, bool> m_moved;
};

}  // namespace

TEST_F(CountersTest, EachMoves) {
  set_age("0.000000001");
  write("small", 0, 4096);
  set_age("5");
  write("large", 0, 1 << 20);  // slots that are not primed
  write("split", 0, 20 << 10);  // 16 KiB and 4 KiB
  use_small_stores(g_ceph_context, {{"swimstore_compression_mode", "force"}});
  write("compressed", 0, 64 << 10);
  write_random("random", 64 << 10);
  use_small_stores(g_ceph_context, {{"swimstore_compression_mode", "none"}});
  m_store->flush_cache(nullptr);
  EXPECT_EQ(64 << 10, read("compressed"));
  write("large", 100, 100);  // in the middle of a block, which is read
  EXPECT_EQ(1 << 20, read("large"));
  EXPECT_EQ(1 << 20, read("large"));
  for (unsigned i = 0; i < 300; ++i) {
    std::map<std::string, ceph::bufferlist> values;
    values["key" + std::to_string(i)].append(std::string(1000, 'v'));
    ObjectStore::Transaction txn;
    txn.touch(kPg, named("omap"));
    txn.omap_setkeys(kPg, named("omap"), values);
    queue(std::move(txn));
  }
  m_store->compact();
  m_store->flush_cache(nullptr);
  ceph::bufferlist header;
  std::map<std::string, ceph::bufferlist> found;
  EXPECT_EQ(0, m_store->omap_get(m_pg, named("omap"), &header, &found));
  const auto entries = m_store->omap_iterator(m_pg, named("omap"));
  entries->seek_to_first();
  entries->next();
  std::vector<ghobject_t> objects;
  EXPECT_EQ(0, m_store->collection_list(m_pg, ghobject_t(), ghobject_t::get_max(), 100, &objects, nullptr));
  // A read that has to be tried again, and one that fails for good.
  load("small");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(4096, read("small"));
  m_env.clear_faults();
  m_store->flush_cache(nullptr);
  m_env.flip_bits(kPath + "/cubes/0/containers/4K", 100, 1);
  EXPECT_EQ(-EIO, read("small"));
  m_env.flip_bits(kPath + "/cubes/0/containers/4K", 100, 1);
  look();
  EXPECT_GT(m_moved.size(), 50u);
  for (const auto& [name, moved] : m_moved) {
    EXPECT_NE(moved, kElsewhere.contains(name)) << name << (moved ? ": is expected not to move" : ": never moves");
  }
}

TEST_F(CountersTest, AReadThatSucceedsInTheEndIsNoFailure) {
  write("object", 0, 4096);
  m_store->flush_cache(nullptr);
  load("object");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(4096, read("object"));
  m_env.clear_faults();
  const PerfCounters& counters = *m_store->get_perf_counters();
  EXPECT_EQ(1u, counters.get(l_swimstore_read_retries));
  EXPECT_EQ(0u, counters.get(l_swimstore_read_errors));
  store_statfs_t report;
  osd_alert_list_t alerts;
  EXPECT_EQ(0, m_store->statfs(&report, &alerts));
  EXPECT_FALSE(alerts.contains("SWIMSTORE_READ_ERRORS"));
}

TEST_F(CountersTest, AReadThatFailsIsOneFailure) {
  write("object", 0, 4096);
  m_store->flush_cache(nullptr);
  load("object");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  EXPECT_EQ(-EIO, read("object"));
  m_env.clear_faults();
  EXPECT_EQ(1u, m_store->get_perf_counters()->get(l_swimstore_read_errors));
}

TEST_F(CountersTest, ABlockThatAWriteCannotBeMergedWithIsAFailedRead) {
  write("object", 0, 4096);
  m_store->flush_cache(nullptr);
  load("object");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  ceph::bufferlist bytes;
  bytes.append("x");
  ObjectStore::Transaction txn;
  txn.write(kPg, named("object"), 100, 1, bytes);
  m_store->queue_transaction(m_pg, std::move(txn));
  m_env.clear_faults();
  m_env.run_until_idle();
  EXPECT_EQ(1u, m_store->get_perf_counters()->get(l_swimstore_read_errors));
}

// One that shares no block copies: its source is read.
TEST_F(CountersTest, ASourceThatAnUnalignedCloneCannotReadIsAFailedRead) {
  write("object", 0, 8192);
  write("target", 0, 4096);
  m_store->flush_cache(nullptr);
  load("object");
  load("target");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  ObjectStore::Transaction txn;
  txn.clone_range(kPg, named("object"), named("target"), 100, 4096, 4096);
  m_store->queue_transaction(m_pg, std::move(txn));
  m_env.clear_faults();
  m_env.run_until_idle();
  EXPECT_EQ(1u, m_store->get_perf_counters()->get(l_swimstore_read_errors));
}

// 'ceph osd perf' has two columns; what is applied is what is durable.
TEST_F(CountersTest, TheTimeOfACommitIsToldForBothColumns) {
  m_store->get_cur_stats();
  write("object", 0, 4096);
  const objectstore_perf_stat_t stat = m_store->get_cur_stats();
  EXPECT_GT(stat.os_commit_latency_ns, 0u);
  EXPECT_EQ(stat.os_apply_latency_ns, stat.os_commit_latency_ns);
}

TEST_F(CountersTest, TheStatusNamesTheVersionAndTheQuarantinedSlots) {
  std::string printed;
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore status")", &printed));
  const std::string version(vtkv::program_version());
  EXPECT_NE(std::string::npos, printed.find("\"swimstore_version\": \"" + version + "\"")) << printed;
  EXPECT_NE(std::string::npos, printed.find("\"quarantined_slots\": []")) << printed;
  std::map<std::string, std::string> metadata;
  m_store->collect_metadata(&metadata);
  EXPECT_EQ(version, metadata["swimstore_version"]);
}

// Every second block of an object dies: what was one piece is many.
TEST_F(CountersTest, TheStatusTellsHowFragmentedTheStoreIs) {
  const auto score = [](const char* of) {
    std::string text;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore status")", &text));
    const size_t section = text.find("\"" + std::string(of) + "\": {", text.find("\"fragmentation\""));
    const std::string name = "\"score\": ";
    const size_t at = text.find(name, section);
    EXPECT_NE(std::string::npos, at) << text;
    return std::stod(text.substr(at + name.size()));
  };
  write("object", 0, 1 << 20);
  const double before = score("data");
  for (uint64_t offset = 0; offset < 1 << 20; offset += 8192) {
    ObjectStore::Transaction txn;
    txn.zero(kPg, named("object"), offset, 4096);
    queue(std::move(txn));
  }
  EXPECT_GT(score("data"), before);
  EXPECT_LE(score("data"), 1);
  EXPECT_GE(score("metadata"), 0);
  EXPECT_LE(score("metadata"), 1);
}

TEST_F(CountersTest, TheScoreOfMetadataIsOfTheZonesInUse) {
  vtkv::DBStatistics database;
  database.zones = 10;
  database.zones_in_use = 4;
  database.tree_file_bytes = 80 << 20;
  database.tree_live_bytes = 8 << 20;
  ceph::JSONFormatter formatter;
  formatter.open_object_section("fragmentation");
  dump_fragmentation({}, database, &formatter);
  formatter.close_section();
  std::ostringstream out;
  formatter.flush(out);
  EXPECT_NE(std::string::npos,
            out.str().find(R"("metadata":{"score":0.75,"zones_bytes":33554432,"live_bytes":8388608})"))
      << out.str();
}

// With what Ceph's dashboards show of BlueStore, managers and exporters are served.
TEST_F(CountersTest, WhatDashboardsShowHasThePriority) {
  std::set<std::string> useful;
  g_ceph_context->get_perfcounters_collection()->with_counters([&](const auto& by_path) {
    for (const auto& [path, ref] : by_path) {
      if (path.starts_with("swimstore.") &&
          ref.perf_counters->get_adjusted_priority(ref.data->prio) >= PerfCountersBuilder::PRIO_USEFUL) {
        useful.insert(ref.data->name);
      }
    }
  });
  for (const char* name : {"onode_hits", "onode_misses", "commit_latency", "read_latency", "queue_latency",
                           "throttle_latency", "submit_latency", "omap_latency", "omap_seek_latency",
                           "omap_next_latency", "list_latency", "read_errors", "read_retries", "slow_operations"}) {
    EXPECT_TRUE(useful.contains(name)) << name;
  }
}

}  // namespace swimstore
