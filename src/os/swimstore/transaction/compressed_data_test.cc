// SPDX-License-Identifier: LGPL-2.1-or-later
// Data that is compressed: what it takes, what is read of it, and what becomes of it when it changes in part.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "global/global_context.h"
#include "include/rados.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/format_version.h"
#include "swimstore/format/superblock.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using ::testing::HasSubstr;

class CompressedDataTest : public SimStoreFixture {
 protected:
  CompressedDataTest() : SimStoreFixture({{"swimstore_log_segment_size", "262144"}}) {}
  void SetUp() override {
    SimStoreFixture::SetUp();
    ask_pool("force");
  }

  void TearDown() override {
    SimStoreFixture::TearDown();
    use_small_stores(g_ceph_context);
  }

  static pool_opts_t options(const std::string& mode, const std::string& algorithm = "") {
    pool_opts_t options;
    options.set(pool_opts_t::COMPRESSION_MODE, mode);
    if (!algorithm.empty()) {
      options.set(pool_opts_t::COMPRESSION_ALGORITHM, algorithm);
    }
    return options;
  }
  void ask_pool(const std::string& mode, const std::string& algorithm = "") {
    EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options(mode, algorithm)));
  }
  // Of each kilobyte as many bytes at random; the same for the same seed.
  static std::string bytes(uint64_t count, unsigned random_per_kib, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::string out(count, 'a');
    for (uint64_t i = 0; i < count; ++i) {
      out[i] = i % 1024 < random_per_kib ? static_cast<char>(random()) : 'a';
    }
    return out;
  }
  void write(const std::string& name, uint64_t offset, const std::string& bytes) {
    ceph::bufferlist data;
    data.append(bytes);
    ObjectStore::Transaction txn;
    txn.write(kPg, named(name), offset, bytes.size(), data);
    queue(std::move(txn));
    std::string& model = m_model[name];
    model.resize(std::max<size_t>(model.size(), offset + bytes.size()));
    model.replace(offset, bytes.size(), bytes);
  }
  // Blocks of "object", with bytes that cannot be compressed.
  void overwrite(uint64_t first, uint64_t end) {
    for (uint64_t block = first; block < end; ++block) {
      write("object", block * 4096, bytes(4096, 1024, block));
    }
  }
  void queue(ObjectStore::Transaction&& txn) {
    EXPECT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn)));
    m_env.run_until_idle();
  }
  // From memory, and from disk.
  void compare() {
    for (unsigned round = 0; round < 2; ++round) {
      for (const auto& [name, model] : m_model) {
        ceph::bufferlist data;
        EXPECT_EQ(static_cast<int>(model.size()), m_store->read(m_pg, named(name), 0, 0, data)) << name;
        EXPECT_TRUE(data.to_str() == model) << name;
      }
      m_store->flush_cache(nullptr);
    }
  }
  void remount() {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
    ask_pool("force");
  }
  std::string alert() {
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    return alerts["SWIMSTORE_NO_COMPRESSION"];
  }
  void remove(const std::string& name) {
    ObjectStore::Transaction txn;
    txn.remove(kPg, named(name));
    queue(std::move(txn));
    m_model.erase(name);
  }
  void clone(const std::string& from, const std::string& to) {
    ObjectStore::Transaction txn;
    txn.clone(kPg, named(from), named(to));
    queue(std::move(txn));
    m_model[to] = m_model[from];
  }
  store_statfs_t usage() {
    store_statfs_t report;
    bool omap = false;
    EXPECT_EQ(0, m_store->pool_statfs(1, &report, &omap));
    return report;
  }
  uint64_t counter(int index) { return m_store->get_perf_counters()->get(index); }

  std::map<std::string, std::string> m_model;
};

TEST_F(CompressedDataTest, TakesLessAndIsReadAsItWasWritten) {
  write("large", 0, bytes(1 << 20, 300));
  const store_statfs_t report = usage();
  EXPECT_EQ(1 << 20, report.data_stored);
  EXPECT_EQ(1 << 20, report.data_compressed_original);
  EXPECT_LT(report.data_compressed, 1 << 19);
  EXPECT_GE(report.data_compressed_allocated, report.data_compressed);
  EXPECT_EQ(report.allocated, report.data_compressed_allocated);
  compare();
  remount();
  compare();
  EXPECT_EQ(report.data_compressed, usage().data_compressed);
}

TEST_F(CompressedDataTest, ByEachOfCephsAlgorithms) {
  for (const char* algorithm : {"snappy", "zlib", "zstd", "lz4"}) {
    ask_pool("force", algorithm);
    const int64_t before = usage().data_compressed_original;
    write(algorithm, 0, bytes(200000, 300));
    EXPECT_GT(usage().data_compressed_original, before) << algorithm;
  }
  compare();
  remount();
  compare();
}

TEST_F(CompressedDataTest, WhatGainsTooLittleIsStoredAsItIs) {
  write("random", 0, bytes(1 << 20, 1024));
  write("short", 0, bytes(4096, 0));
  EXPECT_EQ(0, usage().data_compressed_original);
  EXPECT_EQ((1 << 20) + 4096, usage().allocated);
  compare();
}

TEST_F(CompressedDataTest, ModesFollowTheHintsOfObjects) {
  const auto compressed_with = [this](const std::string& mode, uint32_t hints) {
    ask_pool(mode);
    const std::string name = mode + std::to_string(hints);
    ObjectStore::Transaction hint;
    hint.touch(kPg, named(name));
    hint.set_alloc_hint(kPg, named(name), 1 << 20, 1 << 20, hints);
    queue(std::move(hint));
    const int64_t before = usage().data_compressed_original;
    write(name, 0, bytes(1 << 16, 0));
    return usage().data_compressed_original > before;
  };
  constexpr uint32_t kYes = CEPH_OSD_ALLOC_HINT_FLAG_COMPRESSIBLE, kNo = CEPH_OSD_ALLOC_HINT_FLAG_INCOMPRESSIBLE;
  EXPECT_FALSE(compressed_with("none", kYes));
  EXPECT_TRUE(compressed_with("passive", kYes));
  EXPECT_FALSE(compressed_with("passive", 0));
  EXPECT_TRUE(compressed_with("aggressive", 0));
  EXPECT_FALSE(compressed_with("aggressive", kNo));
  EXPECT_TRUE(compressed_with("force", kNo));
  compare();
}

// Blocks that are overwritten leave the blob; when it takes more than what lives in it, the rest leaves it, too.
TEST_F(CompressedDataTest, OverwrittenBlocksLeaveTheBlobAndThenItGoes) {
  write("object", 0, bytes(64 << 10, 450));
  const int64_t stored = usage().allocated;
  ASSERT_LT(stored, 48 << 10);
  write("object", 4096, bytes(4096, 1024, 2));
  EXPECT_EQ(stored + 4096, usage().allocated);
  EXPECT_EQ(60 << 10, usage().data_compressed_original);
  for (uint64_t block = 2; block < 16; ++block) {
    write("object", block * 4096, bytes(4096, 1024, block));
    compare();
    EXPECT_LE(usage().allocated, stored + (64 << 10));
  }
  EXPECT_EQ(0, usage().data_compressed_original);
  EXPECT_EQ(0, usage().data_compressed);
  EXPECT_EQ(64 << 10, usage().allocated);
  remount();
  compare();
}

// A clone shared it once, and is gone.
TEST_F(CompressedDataTest, ABlobThatWasSharedGoesAsAnyOther) {
  write("object", 0, bytes(64 << 10, 450));
  clone("object", "clone");
  overwrite(0, 8);
  remove("clone");
  overwrite(8, 15);
  EXPECT_EQ(64 << 10, usage().allocated);
  compare();
  remount();
  compare();
}

// As long as a clone needs it, it is not written once more.
TEST_F(CompressedDataTest, ABlobThatIsSharedStays) {
  write("object", 0, bytes(64 << 10, 450));
  const int64_t stored = usage().allocated;
  clone("object", "clone");
  overwrite(0, 15);
  EXPECT_EQ(stored + 15 * 4096, usage().allocated);
  compare();
  remount();
  compare();
}

// When the clone goes, the next write to the shard sees it, also one of a block that left the blob before.
TEST_F(CompressedDataTest, ABlobThatWoreOutWhileItWasSharedGoesWithTheNextWrite) {
  write("object", 0, bytes(64 << 10, 450));
  clone("object", "clone");
  overwrite(0, 15);
  remove("clone");
  write("object", 4096, bytes(4096, 1024, 99));
  EXPECT_EQ(64 << 10, usage().allocated);
  compare();
  remount();
  compare();
}

TEST_F(CompressedDataTest, ZerosAndAnEndGiveSpaceBackToo) {
  write("zeroed", 0, bytes(64 << 10, 450));
  ObjectStore::Transaction zero;
  zero.zero(kPg, named("zeroed"), 4096, 60 << 10);
  queue(std::move(zero));
  m_model["zeroed"].replace(4096, 60 << 10, std::string(60 << 10, '\0'));
  EXPECT_EQ(4096, usage().allocated);
  write("cut", 0, bytes(64 << 10, 450));
  ObjectStore::Transaction cut;
  cut.truncate(kPg, named("cut"), 8192);
  queue(std::move(cut));
  m_model["cut"].resize(8192);
  EXPECT_EQ(3 * 4096, usage().allocated);
  compare();
  remount();
  compare();
}

TEST_F(CompressedDataTest, IsCutOffAndZeroedInTheMiddleOfABlock) {
  write("object", 0, bytes(256 << 10, 100));
  ObjectStore::Transaction txn;
  txn.truncate(kPg, named("object"), 100000);
  txn.zero(kPg, named("object"), 5000, 70000);
  queue(std::move(txn));
  m_model["object"].resize(100000);
  m_model["object"].replace(5000, 70000, std::string(70000, '\0'));
  compare();
  write("object", 99000, bytes(10000, 200, 3));
  compare();
  remount();
  compare();
}

TEST_F(CompressedDataTest, AClonesBlobsAreShared) {
  write("head", 0, bytes(256 << 10, 300));
  const int64_t stored = usage().allocated;
  ObjectStore::Transaction clone;
  clone.clone(kPg, named("head"), named("clone"));
  queue(std::move(clone));
  m_model["clone"] = m_model["head"];
  EXPECT_EQ(stored, usage().allocated);
  EXPECT_EQ(512 << 10, usage().data_compressed_original);
  write("head", 70000, bytes(50000, 1024, 4));
  compare();
  remount();
  compare();
  ObjectStore::Transaction remove;
  remove.remove(kPg, named("head"));
  queue(std::move(remove));
  m_model.erase("head");
  EXPECT_EQ(stored, usage().allocated);
  compare();
  remount();
  ObjectStore::Transaction last;
  last.remove(kPg, named("clone"));
  queue(std::move(last));
  EXPECT_EQ(0, usage().allocated);
  EXPECT_EQ(0, usage().data_compressed);
  m_model.clear();
  remount();
}

TEST_F(CompressedDataTest, RangesAreClonedToWhereverTheyAreWanted) {
  write("from", 0, bytes(256 << 10, 300));
  const std::string& from = m_model["from"];
  // Where it lay, some shards on, elsewhere in a shard, and elsewhere in a block.
  for (const uint64_t target : {20480, 20480 + (128 << 10), 12 << 10, 5000}) {
    const std::string to = "to" + std::to_string(target);
    ObjectStore::Transaction clone;
    clone.touch(kPg, named(to));
    clone.clone_range(kPg, named("from"), named(to), 20480, 150000, target);
    queue(std::move(clone));
    m_model[to] = std::string(target, '\0') + from.substr(20480, 150000);
  }
  // To the end of the source, which is in the middle of a block.
  write("odd", 0, bytes(10000, 300));
  for (const uint64_t target : {4096, 12 << 10}) {
    const std::string to = "odd to" + std::to_string(target);
    ObjectStore::Transaction clone;
    clone.touch(kPg, named(to));
    clone.clone_range(kPg, named("odd"), named(to), 0, 10000, target);
    queue(std::move(clone));
    m_model[to] = std::string(target, '\0') + m_model["odd"];
  }
  compare();
  remount();
  compare();
}

// Room was promised for one write of so many bytes, not for one of each of their runs.
TEST_F(CompressedDataTest, ARangeClonedElsewhereInAShardTakesTheRoomOfOneWrite) {
  for (uint64_t offset = 0; offset < 192 << 10; offset += 12 << 10) {
    write("from", offset, bytes(12 << 10, 300));  // three blocks become two
  }
  ask_pool("none");
  const int64_t before = usage().allocated;
  ObjectStore::Transaction clone;
  clone.touch(kPg, named("to"));
  clone.clone_range(kPg, named("from"), named("to"), 0, 192 << 10, 4096);
  queue(std::move(clone));
  m_model["to"] = std::string(4096, '\0') + m_model["from"];
  EXPECT_EQ(before + (192 << 10), usage().allocated);
  compare();
}

// A stored block is bad: what was compressed cannot be read, and no wrong bytes are.
TEST_F(CompressedDataTest, DamageIsAReadErrorOfItsBlobAlone) {
  write("object", 0, bytes(128 << 10, 20));  // two blocks for each blob, all in one slot
  m_store->flush_cache(nullptr);
  ASSERT_EQ(4 * 4096, usage().allocated);
  m_env.flip_bits(kPath + "/cubes/0/containers/16K", 100, 1);
  ceph::bufferlist data;
  EXPECT_EQ(-EIO, m_store->read(m_pg, named("object"), 0, 4096, data));
  EXPECT_EQ(4096, m_store->read(m_pg, named("object"), 64 << 10, 4096, data));
  EXPECT_EQ(m_model["object"].substr(64 << 10, 4096), data.to_str());
  m_env.flip_bits(kPath + "/cubes/0/containers/16K", 100, 1);
}

TEST_F(CompressedDataTest, OfABlobThatSeveralRangesLieInAllIsReadOnce) {
  write("object", 0, bytes(128 << 10, 20));
  m_store->flush_cache(nullptr);
  interval_set<uint64_t> wanted;
  std::string expected;
  for (uint64_t offset = 0; offset < 128 << 10; offset += 8192) {
    wanted.insert(offset, 4096);
    expected += m_model["object"].substr(offset, 4096);
  }
  const PerfCounters& counters = *m_store->get_perf_counters();
  const uint64_t before = counters.get_tavg_ns(l_swimstore_decompress_latency).first;
  ceph::bufferlist data;
  EXPECT_EQ(64 << 10, m_store->readv(m_pg, named("object"), wanted, data));
  EXPECT_EQ(expected, data.to_str());
  EXPECT_EQ(before + 2, counters.get_tavg_ns(l_swimstore_decompress_latency).first);
  EXPECT_EQ(4u * 4096, counter(l_swimstore_read_slot_bytes));
}

// The OSD's options are for pools that say nothing, and follow a change at run time.
TEST_F(CompressedDataTest, ThePoolsOptionsGoBeforeTheOsds) {
  use_small_stores(g_ceph_context, {{"swimstore_compression_mode", "force"}});
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options("none")));
  write("by the pool", 0, bytes(1 << 16, 0));
  EXPECT_EQ(0, usage().data_compressed_original);
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, pool_opts_t()));
  write("by the OSD", 0, bytes(1 << 16, 0));
  EXPECT_EQ(1 << 16, usage().data_compressed_original);
  use_small_stores(g_ceph_context, {{"swimstore_compression_mode", "none"}});
  write("no more", 0, bytes(1 << 16, 0));
  EXPECT_EQ(1 << 16, usage().data_compressed_original);
  compare();
}

// What is compressed together: BlueStore's min_blob_size, or max_blob_size where hints promise that it is read in
// sequence and stays. Shown by what much smaller data takes: a block for each blob.
TEST_F(CompressedDataTest, BlobsAreAsLongAsTheOptionsAndTheHintsSay) {
  const auto allocated_with = [this](int64_t least, int64_t most, uint32_t hints) {
    pool_opts_t options = CompressedDataTest::options("force");
    options.set(pool_opts_t::COMPRESSION_MIN_BLOB_SIZE, least);
    options.set(pool_opts_t::COMPRESSION_MAX_BLOB_SIZE, most);
    EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
    ObjectStore::Transaction hint;
    hint.touch(kPg, named("object"));
    hint.set_alloc_hint(kPg, named("object"), 1 << 20, 1 << 20, hints);
    queue(std::move(hint));
    write("object", 0, bytes(64 << 10, 0));
    compare();
    const int64_t allocated = usage().allocated;
    remove("object");
    return allocated;
  };
  constexpr uint32_t kStays = CEPH_OSD_ALLOC_HINT_FLAG_SEQUENTIAL_READ | CEPH_OSD_ALLOC_HINT_FLAG_APPEND_ONLY;
  EXPECT_EQ(4 * 4096, allocated_with(16 << 10, 32 << 10, 0));
  EXPECT_EQ(2 * 4096, allocated_with(16 << 10, 32 << 10, kStays));
  EXPECT_EQ(4 * 4096, allocated_with(16 << 10, 32 << 10, kStays | CEPH_OSD_ALLOC_HINT_FLAG_RANDOM_READ));
  EXPECT_EQ(8 * 4096, allocated_with(4096, 0, 0));     // two blocks at least
  EXPECT_EQ(4096, allocated_with(1 << 20, 4096, 0));   // a shard at most
  EXPECT_EQ(4096, allocated_with(0, 0, kStays));       // none is said
}

TEST_F(CompressedDataTest, TheRequiredRatioIsOfBlocks) {
  pool_opts_t options = CompressedDataTest::options("force");
  options.set(pool_opts_t::COMPRESSION_REQUIRED_RATIO, 0.5);
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
  write("object", 0, bytes(64 << 10, 600));
  EXPECT_EQ(0, usage().data_compressed);
  options.set(pool_opts_t::COMPRESSION_REQUIRED_RATIO, 0.75);
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
  write("object", 0, bytes(64 << 10, 600));
  EXPECT_GT(usage().data_compressed, 32 << 10);
  compare();
}

TEST_F(CompressedDataTest, AnAlertTellsOfAPoolThatCannotBeObeyed) {
  EXPECT_EQ(alert(), "");
  ask_pool("force", "brotli");
  EXPECT_THAT(alert(), HasSubstr("pools that ask for compression, and are stored without: 1; "));
  EXPECT_THAT(alert(), HasSubstr("cannot compress by brotli. Choose snappy"));
  write("object", 0, bytes(1 << 16, 0));
  EXPECT_EQ(0, usage().data_compressed_original);
  ask_pool("none", "brotli");
  EXPECT_EQ(alert(), "");
}

// Such a store is written as ever, and the alert says what helps.
TEST_F(CompressedDataTest, AStoreOfBeforeHasToBeUpgraded) {
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  Superblock superblock, after;
  ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
  superblock.features.incompat.erase(kCompressionFeature);
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(superblock).ok());
  ASSERT_EQ(0, m_store->mount());
  m_pg = m_store->open_collection(kPg);
  EXPECT_EQ(alert(), "");
  // Asked for at run time, by the OSD's option.
  use_small_stores(g_ceph_context, {{"swimstore_compression_mode", "force"}});
  write("object", 0, bytes(1 << 16, 0));
  EXPECT_EQ(0, usage().data_compressed_original);
  EXPECT_THAT(alert(), HasSubstr("run 'ceph-swimstore-tool upgrade /store'"));
  use_small_stores(g_ceph_context);
  EXPECT_EQ(alert(), "");
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  bool changed = false;
  ASSERT_TRUE(m_store->upgrade(&superblock, &after, &changed).ok());
  EXPECT_TRUE(after.features.incompat.contains(kCompressionFeature));
  ASSERT_EQ(0, m_store->mount());
  m_pg = m_store->open_collection(kPg);
  ask_pool("force");
  write("object", 0, bytes(1 << 16, 0));
  EXPECT_EQ(1 << 16, usage().data_compressed_original);
  EXPECT_EQ(alert(), "");
  compare();
}

}  // namespace
}  // namespace swimstore
