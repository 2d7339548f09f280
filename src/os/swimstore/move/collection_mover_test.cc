// SPDX-License-Identifier: LGPL-2.1-or-later
// Collections that move between the cubes of a store: by merges of placement groups, and by transactions that name a
// group of another cube.

#include "swimstore/move/collection_mover.h"

#include <array>
#include <random>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/Formatter.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/testing/damage_fixture.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/testing/store_workload.h"

namespace swimstore {

namespace {

constexpr int64_t kPool = 2;
constexpr uint64_t kBlock = kBlockBytes;

// A store of three cubes. Two groups of a pool, of one bit each, lie in cubes 1 and 2.
class CollectionMoverTest : public SimStoreFixture {
 protected:
  CollectionMoverTest() : SimStoreFixture({{"swimstore_cubes", "2"}, {"swimstore_log_segment_size", "262144"}}) {}
  ~CollectionMoverTest() override { use_small_stores(g_ceph_context); }

  void SetUp() override {
    SimStoreFixture::SetUp();
    for (unsigned i = 0; i < 2; ++i) {
      m_groups[i] = m_store->create_new_collection(kGroup[i]);
      ObjectStore::Transaction create;
      create.create_collection(kGroup[i], 1);
      queue(i, std::move(create));
    }
  }
  void TearDown() override {
    m_groups = {};
    SimStoreFixture::TearDown();
  }

  // Of the second group, which moves.
  static ghobject_t object(const std::string& name, snapid_t snap = CEPH_NOSNAP, uint32_t hash = 1) {
    return ghobject_t(hobject_t(object_t(name), "", snap, hash, kPool, ""));
  }
  static ghobject_t temporary(const std::string& name, uint32_t hash = 1) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, hash, -2 - kPool, ""));
  }
  static std::string content(uint64_t bytes, uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    std::string text(bytes, '\0');
    for (char& c : text) {
      c = static_cast<char>(random());
    }
    return text;
  }
  static ceph::bufferlist list_of(const std::string& text) {
    ceph::bufferlist data;
    data.append(text);
    return data;
  }
  static void write(ObjectStore::Transaction* txn, const ghobject_t& oid, uint64_t offset, const std::string& text) {
    txn->write(kGroup[1], oid, offset, text.size(), list_of(text));
  }

  void queue(unsigned group, ObjectStore::Transaction&& txn) {
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[group], std::move(txn)));
  }
  // As the OSD merges the second group into the first.
  void merge() {
    ObjectStore::Transaction txn;
    txn.merge_collection(kGroup[1], kGroup[0], 0);
    queue(0, std::move(txn));
    m_groups[1].reset();
    ASSERT_FALSE(m_store->collection_exists(kGroup[1]));
  }
  // Commits where the first group lies, so that the second one goes there. And back.
  void move(unsigned to) {
    ObjectStore::Transaction txn;
    txn.touch(to == 0 ? kGroup[0] : kPg, to == 0 ? object("anchor", CEPH_NOSNAP, 0) : named("anchor"));
    txn.touch(kGroup[1], object("moves"));
    if (to == 0) {
      queue(0, std::move(txn));
    } else {
      ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn)));
    }
  }

  ModelCollection read(unsigned group) {
    std::string error;
    ModelCollection found = read_collection(*m_store, m_groups[group], &error);
    EXPECT_EQ(error, "");
    return found;
  }
  store_statfs_t usage() {
    store_statfs_t report;  // of blocks; how well they fill their slots is another matter
    bool per_pool_omap = false;
    EXPECT_EQ(0, m_store->pool_statfs(kPool, &report, &per_pool_omap));
    return report;
  }

  // Unmounts, checks, and mounts again. What each cube has of the pool: *usage.
  void remount(std::vector<PoolUsage>* usage = nullptr, uint64_t errors = 0) {
    const bool merged = !m_groups[1];
    m_pg.reset();
    m_groups = {};
    ASSERT_EQ(0, m_store->umount());
    CheckResult result;
    ASSERT_TRUE(m_store->check({.deep = true}, &result).ok());
    EXPECT_EQ(errors, result.errors) << (result.findings.empty() ? "" : result.findings.front().text);
    if (usage != nullptr) {
      read_usage(usage);
    }
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
    m_groups[0] = m_store->open_collection(kGroup[0]);
    m_groups[1] = m_store->open_collection(kGroup[1]);
    ASSERT_TRUE(m_groups[0]);
    ASSERT_EQ(merged, !m_groups[1]);
  }
  void read_usage(std::vector<PoolUsage>* usage) {
    std::unique_ptr<CubeSet> cubes;
    ASSERT_NO_FATAL_FAILURE(open_cubes(true, &cubes));
    usage->clear();
    for (unsigned cube = 0; cube < 3; ++cube) {
      usage->push_back((*cubes)[cube].pool_usage()[kPool]);
    }
  }
  // Of a store that is not mounted.
  void open_cubes(bool read_only, std::unique_ptr<CubeSet>* cubes) {
    ASSERT_TRUE(open_cubes_of(g_ceph_context, &m_env, kPath, {.read_only = read_only}, cubes).ok());
    ASSERT_EQ(3u, (*cubes)->size());
  }
  struct Stored {
    OnodeRecord record;
    ExtentShard shard;
  };
  static Stored stored(Cube& cube, const ghobject_t& oid) {
    std::string value;
    Stored found;
    EXPECT_TRUE(cube.database().get(object_key(oid), &value).ok());
    EXPECT_TRUE(decode_onode(value, &found.record, &found.shard));
    return found;
  }
  // The second group's objects claim what others own, and repair lets them share it.
  void forge(const std::map<ghobject_t, Stored>& objects) {
    {
      std::unique_ptr<CubeSet> cubes;
      ASSERT_NO_FATAL_FAILURE(open_cubes(false, &cubes));
      Damage damage;
      for (const auto& [oid, object] : objects) {
        std::string value;
        encode_onode(object.record, object.shard, &value);
        damage.batch.put(object_key(oid), value);
      }
      (*cubes)[2].submit(&damage);
      ASSERT_TRUE((*cubes)[2].database().wait_durable(damage.last_sequence).ok());
    }
    std::vector<Repaired> changes;
    CheckResult result;
    ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
    ASSERT_FALSE(changes.empty());
  }

  static inline const std::array<coll_t, 2> kGroup{coll_t(spg_t(pg_t(0, kPool))), coll_t(spg_t(pg_t(1, kPool)))};
  std::array<ObjectStore::CollectionHandle, 2> m_groups;
};

}  // namespace

TEST_F(CollectionMoverTest, MergeTakesAllThatObjectsHave) {
  ObjectStore::Transaction txn;
  const std::string large = content(300000, 2);
  write(&txn, object("whole"), 0, large);
  write(&txn, object("small"), 0, "small");
  write(&txn, object("holes"), 10 * kBlock + 17, content(3 * kBlock, 3));
  write(&txn, object("holes"), 200 * kBlock, content(100, 4));
  txn.truncate(kGroup[1], object("holes"), 1 << 20);
  txn.touch(kGroup[1], object("hole only"));
  txn.truncate(kGroup[1], object("hole only"), 5000000);
  txn.touch(kGroup[1], object("empty"));
  write(&txn, temporary("temporary"), 0, content(5000, 5));
  ceph::bufferlist value = list_of("value");
  txn.setattr(kGroup[1], object("small"), "attribute", value);
  txn.set_alloc_hint(kGroup[1], object("small"), 4 << 20, 1 << 16, CEPH_OSD_ALLOC_HINT_FLAG_COMPRESSIBLE);
  txn.omap_setheader(kGroup[1], object("small"), list_of("header"));
  std::map<std::string, ceph::bufferlist> values;
  for (unsigned i = 0; i < 300; ++i) {
    values["key " + std::to_string(i)] = list_of(content(i, i));
  }
  txn.omap_setkeys(kGroup[1], object("small"), values);
  queue(1, std::move(txn));
  ObjectStore::Transaction other;
  other.touch(kGroup[0], object("of the first", CEPH_NOSNAP, 0));
  queue(0, std::move(other));
  std::vector<PoolUsage> before, after;
  ASSERT_NO_FATAL_FAILURE(remount(&before));
  const ModelCollection model = read(1);
  ASSERT_EQ(6u, model.size());
  const unsigned from = before[1].objects == 6 ? 1 : 2;
  ASSERT_EQ(6, before[from].objects);
  ASSERT_EQ(1, before[3 - from].objects);

  ASSERT_NO_FATAL_FAILURE(merge());
  ModelCollection merged = read(0);
  EXPECT_EQ(1u, merged.erase(object("of the first", CEPH_NOSNAP, 0)));
  EXPECT_EQ("", difference(model, merged));
  ASSERT_NO_FATAL_FAILURE(remount(&after));
  EXPECT_TRUE(after[from].is_zero());
  EXPECT_EQ(7, after[3 - from].objects);
  EXPECT_EQ(before[from].stored, after[3 - from].stored);
  EXPECT_EQ(before[from].allocated, after[3 - from].allocated);
  merged = read(0);
  merged.erase(object("of the first", CEPH_NOSNAP, 0));
  EXPECT_EQ("", difference(model, merged));
  JSONFormatter formatter;
  ASSERT_EQ(0, m_store->dump_onode(m_groups[0], object("small"), "onode", &formatter));
  std::ostringstream dump;
  formatter.flush(dump);
  EXPECT_THAT(dump.str(), testing::HasSubstr("4194304"));
}

// Whatever the addresses at which the two lie in memory, by which their locks are ordered.
TEST_F(CollectionMoverTest, GroupGoesWhereTheOneLiesThatItIsQueuedOn) {
  for (const unsigned queued_on : {0u, 1u}) {
    ASSERT_NO_FATAL_FAILURE(move(1));
    ASSERT_NE(home_of(*m_store, kGroup[0]), home_of(*m_store, kGroup[1]));
    const unsigned home = home_of(*m_store, kGroup[queued_on]);
    ObjectStore::Transaction both;
    both.touch(kGroup[0], object("of 0", CEPH_NOSNAP, 0));
    both.touch(kGroup[1], object("of 1"));
    ASSERT_NO_FATAL_FAILURE(queue(queued_on, std::move(both)));
    EXPECT_EQ(home, home_of(*m_store, kGroup[0]));
    EXPECT_EQ(home, home_of(*m_store, kGroup[1]));
  }
}

TEST_F(CollectionMoverTest, EmptyCollectionMoves) {
  ASSERT_NO_FATAL_FAILURE(merge());
  ASSERT_NO_FATAL_FAILURE(remount());
  EXPECT_EQ(0u, read(0).size());
}

// What they share in the one cube they share in the other, and nothing else: the pool does not grow, and each can be
// changed and removed by itself afterwards.
TEST_F(CollectionMoverTest, ClonesGoOnSharing) {
  ObjectStore::Transaction txn;
  write(&txn, object("image"), 0, content(40 * kBlock + 100));
  txn.clone(kGroup[1], object("image"), object("image", 1));
  write(&txn, object("image"), 3 * kBlock, content(5 * kBlock, 2));
  txn.clone(kGroup[1], object("image"), object("image", 2));
  txn.truncate(kGroup[1], object("image"), 60 * kBlock);  // the last block of the clone lies in the middle
  txn.clone_range(kGroup[1], object("image"), object("other"), 8 * kBlock, 8 * kBlock, 0);
  txn.clone_range(kGroup[1], object("other"), object("image"), 0, 4 * kBlock, 50 * kBlock);  // twice in one object
  txn.clone(kGroup[1], object("image"), temporary("copy"));
  queue(1, std::move(txn));
  std::vector<PoolUsage> before, after;
  ASSERT_NO_FATAL_FAILURE(remount(&before));
  const ModelCollection model = read(1);
  const uint64_t allocated = usage().allocated;
  ASSERT_GT(allocated, 0u);
  ASSERT_LT(allocated, 60 * kBlock);

  ASSERT_NO_FATAL_FAILURE(merge());
  EXPECT_EQ("", difference(model, read(0)));
  ASSERT_NO_FATAL_FAILURE(remount(&after));
  EXPECT_EQ(allocated, usage().allocated);
  EXPECT_EQ(before[1].allocated + before[2].allocated, after[1].allocated + after[2].allocated);
  EXPECT_EQ(before[1].stored + before[2].stored, after[1].stored + after[2].stored);

  ModelCollection left = model;
  for (const auto& oid :
       {object("image", 1), temporary("copy"), object("image"), object("other"), object("image", 2)}) {
    ObjectStore::Transaction remove;
    remove.remove(kGroup[0], oid);
    queue(0, std::move(remove));
    left.erase(oid);
    EXPECT_EQ("", difference(left, read(0)));
  }
  ASSERT_NO_FATAL_FAILURE(remount());
  EXPECT_EQ(0u, usage().allocated);
}

// Compressed data takes no more room than before, whatever the pool asks for now, and goes on being shared.
TEST_F(CollectionMoverTest, CompressedDataMovesAsItIsStored) {
  pool_opts_t options;
  options.set(pool_opts_t::COMPRESSION_MODE, std::string("force"));
  ASSERT_EQ(0, m_store->set_collection_opts(m_groups[1], options));
  std::string text(300000, 'a');
  text.replace(70000, 10000, content(10000));
  ObjectStore::Transaction txn;
  write(&txn, object("image"), 0, text);
  txn.clone(kGroup[1], object("image"), object("image", 1));
  write(&txn, object("image"), 100000, content(70000, 2));
  txn.clone(kGroup[1], object("image"), object("image", 2));
  queue(1, std::move(txn));
  ASSERT_NO_FATAL_FAILURE(remount());
  const ModelCollection model = read(1);
  const store_statfs_t before = usage();
  ASSERT_GT(before.data_compressed_original, 600000);
  ASSERT_NO_FATAL_FAILURE(merge());
  EXPECT_EQ("", difference(model, read(0)));
  ASSERT_NO_FATAL_FAILURE(remount());
  EXPECT_EQ(before.allocated, usage().allocated);
  EXPECT_EQ(before.data_compressed, usage().data_compressed);
  EXPECT_EQ(before.data_compressed_original, usage().data_compressed_original);
  for (const auto& oid : {object("image", 1), object("image"), object("image", 2)}) {
    ObjectStore::Transaction remove;
    remove.remove(kGroup[0], oid);
    queue(0, std::move(remove));
  }
  ASSERT_NO_FATAL_FAILURE(remount());
  EXPECT_EQ(0u, usage().allocated);
  EXPECT_EQ(0u, usage().data_compressed_allocated);
}

// Two objects name the same blocks and expect other bytes there, as repair leaves them where both claimed a slot. What
// was not to be read is not to be read behind the move, either.
TEST_F(CollectionMoverTest, BlocksAreSharedOnlyByThoseWhoExpectTheSame) {
  const std::string noise = content(12000);
  pool_opts_t options;
  options.set(pool_opts_t::COMPRESSION_MODE, std::string("force"));
  ASSERT_EQ(0, m_store->set_collection_opts(m_groups[1], options));
  ObjectStore::Transaction compressed, plain;
  const std::string text = noise + std::string(50000, 'a');
  write(&compressed, object("compressed"), 0, text);
  write(&compressed, object("claims compressed"), 0, text);
  queue(1, std::move(compressed));
  options.set(pool_opts_t::COMPRESSION_MODE, std::string("none"));
  ASSERT_EQ(0, m_store->set_collection_opts(m_groups[1], options));
  write(&plain, object("plain"), 0, noise);
  write(&plain, object("claims plain"), 0, noise);
  queue(1, std::move(plain));
  m_pg.reset();
  m_groups = {};
  ASSERT_EQ(0, m_store->umount());
  std::map<ghobject_t, Stored> claims;
  {
    std::unique_ptr<CubeSet> cubes;
    ASSERT_NO_FATAL_FAILURE(open_cubes(true, &cubes));
    Stored& blob = claims[object("claims compressed")] = stored((*cubes)[2], object("compressed"));
    ASSERT_EQ(1u, blob.shard.blobs.size());
    ASSERT_LT(1u, blob.shard.blobs[0].crc32c.size());
    blob.shard.blobs[0].crc32c.back() ^= 1;
    Stored& extent = claims[object("claims plain")] = stored((*cubes)[2], object("plain"));
    ASSERT_EQ(1u, extent.shard.extents.size());
    extent.shard.crc32c[0] ^= 1;
  }
  ASSERT_NO_FATAL_FAILURE(forge(claims));
  ASSERT_EQ(0, m_store->mount());
  m_pg = m_store->open_collection(kPg);
  m_groups = {m_store->open_collection(kGroup[0]), m_store->open_collection(kGroup[1])};
  for (const unsigned group : {1, 0}) {
    for (const std::string& name : {"compressed", "plain"}) {
      ceph::bufferlist data;
      EXPECT_EQ(-EIO, m_store->read(m_groups[group], object("claims " + name), 0, kBlock, data)) << name << group;
      EXPECT_EQ(static_cast<int>(kBlock), m_store->read(m_groups[group], object(name), 0, kBlock, data));
      EXPECT_EQ(noise.substr(0, kBlock), data.to_str()) << name << group;
    }
    if (group == 1) {
      ASSERT_NO_FATAL_FAILURE(merge());
    }
  }
}

// Of many transactions: objects and omap that none holds whole.
TEST_F(CollectionMoverTest, LargeObjectsMoveInParts) {
  const uint64_t blocks = 5000;
  for (uint64_t block = 0; block < blocks; block += 1000) {
    ObjectStore::Transaction txn;
    write(&txn, object("large"), block * kBlock, content(1000 * kBlock, block));
    queue(1, std::move(txn));
    m_env.run_until_idle();
  }
  for (unsigned part = 0; part < 10; ++part) {
    std::map<std::string, ceph::bufferlist> values;
    for (unsigned i = 0; i < 70; ++i) {
      values[std::to_string(part) + " " + std::to_string(i)] = list_of(content(8000, i));
    }
    ObjectStore::Transaction txn;
    txn.omap_setkeys(kGroup[1], object("large"), values);
    queue(1, std::move(txn));
    m_env.run_until_idle();
  }
  const ModelCollection model = read(1);
  const uint64_t allocated = usage().allocated;
  ASSERT_NO_FATAL_FAILURE(merge());
  EXPECT_EQ("", difference(model, read(0)));
  EXPECT_EQ(allocated, usage().allocated);
  ASSERT_NO_FATAL_FAILURE(remount());
  EXPECT_EQ("", difference(model, read(0)));
}

TEST_F(CollectionMoverTest, BlockThatCannotBeReadStaysSo) {
  ObjectStore::Transaction txn;
  for (unsigned block = 0; block < 4; ++block) {
    write(&txn, object("damaged"), block * kBlock, std::string(kBlock, 'a'));
  }
  txn.clone(kGroup[1], object("damaged"), object("damaged", 1));
  queue(1, std::move(txn));
  ASSERT_NO_FATAL_FAILURE(remount());
  JSONFormatter formatter;
  ASSERT_EQ(0, m_store->dump_onode(m_groups[1], object("damaged"), "onode", &formatter));
  std::ostringstream text;
  formatter.flush(text);
  const std::string dump = text.str();
  const std::regex extent(R"("offset":8192,"length":4096,"slot_bytes":4096,"slot_index":(\d+))");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(dump, match, extent)) << dump;
  m_env.flip_bits("/store/cubes/2/containers/4K", std::stoull(match[1]) * 4096 + 100, 1);
  ASSERT_NO_FATAL_FAILURE(merge());
  for (const auto& oid : {object("damaged"), object("damaged", 1)}) {
    ceph::bufferlist data;
    EXPECT_EQ(-EIO, m_store->read(m_groups[0], oid, 2 * kBlock, kBlock, data));
    EXPECT_EQ(static_cast<int>(2 * kBlock), m_store->read(m_groups[0], oid, 0, 2 * kBlock, data));
    EXPECT_EQ(std::string(2 * kBlock, 'a'), data.to_str());
    EXPECT_EQ(static_cast<int>(kBlock), m_store->read(m_groups[0], oid, 3 * kBlock, kBlock, data));
  }
  ASSERT_NO_FATAL_FAILURE(remount(nullptr, 2));
  for (const auto& oid : {object("damaged"), object("damaged", 1)}) {
    ObjectStore::Transaction repair;
    repair.write(kGroup[0], oid, 2 * kBlock, kBlock, list_of(std::string(kBlock, 'b')));
    queue(0, std::move(repair));
  }
  ASSERT_NO_FATAL_FAILURE(remount());
}

// There and back again, between transactions of every kind. Names of one hash, for a rename to another hash may part
// objects that share blocks.
TEST_F(CollectionMoverTest, ManyMovesChangeNothing) {
  StoreWorkload workload(kGroup[1], {.seed = 5, .objects = 5, .hashes = 1, .object_bytes_max = 100000});
  for (unsigned round = 0; round < 40; ++round) {
    for (unsigned i = 0; i < 6; ++i) {
      queue(1, workload.next());
    }
    const uint64_t allocated = usage().allocated;
    ASSERT_NO_FATAL_FAILURE(move(round % 2));
    ModelCollection found = read(1);
    ASSERT_EQ(1u, found.erase(object("moves")));
    ASSERT_EQ("", difference(workload.model(), found)) << "round " << round;
    ASSERT_EQ(allocated, usage().allocated) << "round " << round;
    if (round % 8 == 7) {
      ASSERT_NO_FATAL_FAILURE(remount());
    }
  }
  ObjectStore::Transaction end;
  for (const auto& [oid, object] : workload.model()) {
    end.remove(kGroup[1], oid);
  }
  queue(1, std::move(end));
  std::vector<PoolUsage> left;
  ASSERT_NO_FATAL_FAILURE(remount(&left));
  EXPECT_EQ(0u, usage().allocated);
  EXPECT_EQ(2, left[1].objects + left[2].objects);  // what move() touches
}

}  // namespace swimstore
