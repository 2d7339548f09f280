// SPDX-License-Identifier: LGPL-2.1-or-later
// Long random runs against the model, in a simulated host without crashes, and what damaged data does.

#include <regex>

#include <gtest/gtest.h>

#include "common/Formatter.h"
#include "global/global_context.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

namespace {

const coll_t kPg(spg_t(pg_t(0, 1)));

class StoreModelTest : public ::testing::Test {
 protected:
  StoreModelTest() : m_env({.record = false}) {
    use_small_stores(g_ceph_context, {{"swimstore_log_segment_size", "262144"}});
    EXPECT_TRUE(m_env.create_directory("/store").ok());
    m_store = std::make_unique<SwimStore>(g_ceph_context, "/store", &m_env);
    EXPECT_EQ(m_store->mkfs(), 0);
    EXPECT_EQ(m_store->mount(), 0);
    m_pg = m_store->create_new_collection(kPg);
    ObjectStore::Transaction create;
    create.create_collection(kPg, 0);
    queue(std::move(create));
  }
  ~StoreModelTest() override {
    m_pg.reset();
    EXPECT_EQ(m_store->umount(), 0);
  }

  // Durable on return, and its data is in the slots.
  void queue(ObjectStore::Transaction&& transaction) {
    EXPECT_EQ(m_store->queue_transaction(m_pg, std::move(transaction)), 0);
    m_env.run_until_idle();
  }

  void remount() {
    m_pg.reset();
    ASSERT_EQ(m_store->umount(), 0);
    ASSERT_EQ(m_store->fsck(true), 0);
    ASSERT_EQ(m_store->mount(), 0);
    m_pg = m_store->open_collection(kPg);
    ASSERT_TRUE(m_pg);
  }

  void compare(const ModelCollection& model) {
    std::string error;
    const ModelCollection found = read_collection(*m_store, m_pg, &error);
    ASSERT_EQ(error, "");
    ASSERT_EQ(difference(model, found), "");
  }

  void run(const WorkloadOptions& options, unsigned transactions) {
    StoreWorkload workload(kPg, options);
    std::mt19937_64 random(options.seed);
    for (unsigned done = 0; done < transactions; ++done) {
      ASSERT_EQ(m_store->queue_transaction(m_pg, workload.next()), 0);
      if (random() % 4 == 0) {
        m_env.run_until_idle();
      }
      if (random() % 50 == 0) {
        ASSERT_NO_FATAL_FAILURE(compare(workload.model()));
      }
      if (random() % 100 == 0) {
        ASSERT_NO_FATAL_FAILURE(remount());
        ASSERT_NO_FATAL_FAILURE(compare(workload.model()));
      }
    }
    if (options.compressible) {
      EXPECT_GT(m_store->get_perf_counters()->get_tavg_ns(l_swimstore_compress_latency).first, transactions / 10);
      EXPECT_GT(m_store->get_perf_counters()->get_tavg_ns(l_swimstore_decompress_latency).first, transactions / 10);
    }
    // Without its objects nothing is left: the collection goes, and every slot is free again.
    ObjectStore::Transaction end;
    for (const auto& [oid, object] : workload.model()) {
      end.remove(kPg, oid);
    }
    queue(std::move(end));
    ASSERT_NO_FATAL_FAILURE(remount());
    store_statfs_t usage;
    ASSERT_EQ(m_store->statfs(&usage), 0);
    EXPECT_EQ(usage.allocated, 0);
    EXPECT_EQ(usage.data_stored, 0);
  }

  // Changes one bit of the object's block that starts at `offset`, where it lies on disk.
  void damage(const ghobject_t& oid, uint64_t offset) {
    JSONFormatter formatter;
    ASSERT_EQ(m_store->dump_onode(m_pg, oid, "onode", &formatter), 0);
    std::ostringstream text;
    formatter.flush(text);
    const std::regex extent(R"("offset":(\d+),"length":(\d+),"slot_bytes":4096,"slot_index":(\d+))");
    const std::string dump = text.str();
    for (std::sregex_iterator at(dump.begin(), dump.end(), extent), end; at != end; ++at) {
      if (std::stoull((*at)[1]) == offset) {
        m_env.flip_bits(container_of_4k(), std::stoull((*at)[3]) * 4096 + 100, 1);
        return;
      }
    }
    FAIL() << "no 4 KiB slot at " << offset << ": " << dump;
  }

  std::string container_of_4k() {
    for (const std::string& file : m_env.files()) {
      if (file.ends_with("containers/4K")) {
        return file;
      }
    }
    ADD_FAILURE() << "there is no container of 4 KiB slots";
    return {};
  }

  void write(const ghobject_t& oid, uint64_t offset, size_t length, char byte) {
    ceph::bufferlist data;
    data.append(std::string(length, byte));
    ObjectStore::Transaction transaction;
    transaction.write(kPg, oid, offset, length, data);
    queue(std::move(transaction));
  }

  vtkv::SimEnv m_env;
  std::unique_ptr<SwimStore> m_store;
  ObjectStore::CollectionHandle m_pg;
};

ghobject_t object(const std::string& name) { return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 0, 1, "")); }

}  // namespace

TEST_F(StoreModelTest, FewObjectsOfSomeShards) { run({.seed = 1, .objects = 6, .object_bytes_max = 300000}, 1500); }
TEST_F(StoreModelTest, ManySmallObjects) { run({.seed = 2, .objects = 60, .object_bytes_max = 30000}, 3000); }
TEST_F(StoreModelTest, LargeObjects) { run({.seed = 3, .objects = 3, .object_bytes_max = 9000000}, 150); }

TEST_F(StoreModelTest, CompressedObjects) {
  use_small_stores(g_ceph_context, {{"swimstore_log_segment_size", "262144"}, {"swimstore_compression_mode", "force"}});
  run({.seed = 4, .objects = 6, .object_bytes_max = 300000, .compressible = true}, 1500);
}
TEST_F(StoreModelTest, SomeObjectsAreCompressed) {
  use_small_stores(g_ceph_context, {{"swimstore_log_segment_size", "262144"},
                                    {"swimstore_compression_mode", "force"},
                                    {"swimstore_compression_algorithm", "lz4"},
                                    {"swimstore_compression_min_blob_size", "16384"}});
  run({.seed = 5, .objects = 20, .object_bytes_max = 100000, .compressible = true}, 1500);
  run({.seed = 6, .objects = 6, .object_bytes_max = 300000}, 500);
}

TEST_F(StoreModelTest, DamagedDataGivesEioAndNothingElse) {
  const ghobject_t oid = object("damaged");
  write(oid, 0, 4096, 'a');
  write(oid, 4096, 4096, 'b');
  ASSERT_NO_FATAL_FAILURE(damage(oid, 4096));
  m_store->flush_cache();
  ceph::bufferlist out;
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 8192, out), -EIO);
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 4096, out), 4096);
  EXPECT_EQ(out.to_str(), std::string(4096, 'a'));
}

TEST_F(StoreModelTest, AScrubReadsWhatTheDiskHolds) {
  const ghobject_t oid = object("scrubbed");
  write(oid, 0, 4096, 'a');
  ASSERT_NO_FATAL_FAILURE(damage(oid, 0));
  ceph::bufferlist out;
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 4096, out), 4096);  // written lately: from memory
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 4096, out, CEPH_OSD_OP_FLAG_BYPASS_CLEAN_CACHE), -EIO);
}

TEST_F(StoreModelTest, AWriteIntoADamagedBlockDoesNotPassForGood) {
  const ghobject_t oid = object("merged");
  write(oid, 0, 4096, 'a');
  ASSERT_NO_FATAL_FAILURE(damage(oid, 0));
  m_store->flush_cache();
  write(oid, 100, 10, 'b');
  ceph::bufferlist out;
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 4096, out), -EIO);
  write(oid, 0, 4096, 'c');  // as the OSD's repair does
  EXPECT_EQ(m_store->read(m_pg, oid, 0, 4096, out), 4096);
  EXPECT_EQ(out.to_str(), std::string(4096, 'c'));
}

TEST_F(StoreModelTest, AReadBringsTheChecksumOfItsBytes) {
  const ghobject_t oid = object("read");
  write(oid, 0, 200000, 'a');
  write(oid, 65536, 4096, 'b');
  write(oid, 98304, 20000, 'c');
  write(oid, 400000, 5000, 'd');  // behind a hole
  m_store->flush_cache();
  ceph::buffer::track_cached_crc(true);
  const auto check = [&](uint64_t offset, uint64_t length, bool known) {
    ceph::bufferlist out;
    ASSERT_EQ(m_store->read(m_pg, oid, offset, length, out), length);
    ceph::bufferlist copy;
    copy.append(out.to_str());
    const int hits = ceph::buffer::get_cached_crc();
    EXPECT_EQ(out.crc32c(-1), copy.crc32c(-1)) << offset;
    EXPECT_EQ(ceph::buffer::get_cached_crc() - hits, known ? 1 : 0) << offset;
  };
  check(0, 196608, true);
  check(61440, 12288, true);   // from memory, in part
  check(61440, 12000, false);  // not whole blocks
  check(196608, 8192, false);  // ends in the hole
  ceph::buffer::track_cached_crc(false);
}

TEST_F(StoreModelTest, WhatIsGoneTakesNoRoomInTheCache) {
  const auto cached_bytes = [this] {
    m_store->refresh_perf_counters();
    return m_store->get_perf_counters()->get(l_swimstore_data_cache_bytes);
  };
  write(object("kept"), 0, 8192, 'a');
  write(object("gone"), 0, 65536, 'b');
  EXPECT_EQ(cached_bytes(), 8192u + 65536);
  ObjectStore::Transaction transaction;
  transaction.clone(kPg, object("gone"), object("clone"));
  transaction.remove(kPg, object("gone"));
  queue(std::move(transaction));
  EXPECT_EQ(cached_bytes(), 8192u + 65536);
  ObjectStore::Transaction last;
  last.remove(kPg, object("clone"));
  queue(std::move(last));
  EXPECT_EQ(cached_bytes(), 8192u);
}

TEST_F(StoreModelTest, ACloneOutlivesItsSource) {
  const ghobject_t source = object("source");
  const ghobject_t clone = object("clone");
  write(source, 0, 1 << 20, 'a');
  ObjectStore::Transaction transaction;
  transaction.clone(kPg, source, clone);
  transaction.remove(kPg, source);
  queue(std::move(transaction));
  ASSERT_NO_FATAL_FAILURE(remount());
  ceph::bufferlist out;
  EXPECT_EQ(m_store->read(m_pg, clone, 0, 0, out), 1 << 20);
  EXPECT_EQ(out.to_str(), std::string(1 << 20, 'a'));
}

TEST_F(StoreModelTest, OmapSetInTheSameTransactionIsCloned) {
  const ghobject_t source = object("source");
  const ghobject_t clone = object("clone");
  const auto keys = [](const char* key, const char* value) {
    std::map<std::string, ceph::bufferlist> entries;
    entries[key].append(value);
    return entries;
  };
  ObjectStore::Transaction first;
  first.touch(kPg, source);
  first.omap_setkeys(kPg, source, keys("old", "1"));
  first.omap_setkeys(kPg, source, keys("removed", "1"));
  queue(std::move(first));
  ObjectStore::Transaction second;
  second.omap_setkeys(kPg, source, keys("new", "2"));
  second.omap_rmkey(kPg, source, "removed");
  second.clone(kPg, source, clone);
  second.omap_clear(kPg, source);
  queue(std::move(second));
  std::set<std::string> found;
  ASSERT_EQ(m_store->omap_get_keys(m_pg, clone, &found), 0);
  EXPECT_EQ(found, (std::set<std::string>{"new", "old"}));
  found.clear();
  ASSERT_EQ(m_store->omap_get_keys(m_pg, source, &found), 0);
  EXPECT_TRUE(found.empty());
}

}  // namespace swimstore
