// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects whose data is put together while clients use them.

#include "swimstore/defragment/data_defragmenter.h"

#include <functional>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "include/rados.h"

#include "swimstore/fsck/fsck.h"
#include "swimstore/move/online_move.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/mutations.h"

namespace swimstore {

namespace {

using vtkv::Mutation;

constexpr uint64_t kObjectBytes = 256 << 10;

class DataDefragmenterTest : public SimStoreFixture {
 protected:
  explicit DataDefragmenterTest(OptionValues options = {}) : SimStoreFixture(options) {}
  ~DataDefragmenterTest() override { use_small_stores(g_ceph_context); }

  void queue(ObjectStore::Transaction txn) { ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn))); }
  void write(const ghobject_t& oid, uint64_t offset, const std::string& bytes) {
    ceph::bufferlist data;
    data.append(bytes);
    ObjectStore::Transaction txn;
    txn.write(kPg, oid, offset, bytes.size(), data);
    queue(std::move(txn));
  }
  void clone(const ghobject_t& from, const ghobject_t& to) {
    ObjectStore::Transaction txn;
    txn.clone(kPg, from, to);
    queue(std::move(txn));
  }
  void remove(const ghobject_t& oid) {
    ObjectStore::Transaction txn;
    txn.remove(kPg, oid);
    queue(std::move(txn));
  }
  // Written at once, and then every other block of it once more, in turn with another object's: what is in it.
  std::string age(const ghobject_t& oid) {
    std::string bytes(kObjectBytes, 'a');
    write(oid, 0, bytes);
    for (uint64_t at = 0; at < kObjectBytes; at += 2 * kBlockBytes) {
      const std::string block(kBlockBytes, static_cast<char>('b' + at / kBlockBytes % 20));
      write(oid, at, block);
      write(m_other, at, block);
      bytes.replace(at, kBlockBytes, block);
    }
    return bytes;
  }
  std::string read(const ghobject_t& oid) {
    ceph::bufferlist bytes;
    EXPECT_LE(0, m_store->read(m_pg, oid, 0, 0, bytes));
    return bytes.to_str();
  }
  void defragment(const std::function<void()>& between = {}) {
    const vtkv::Status status = m_store->defragment_in_use(false, between, &m_counts);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  uint64_t fragmented_bytes() {
    EXPECT_TRUE(m_store->defragment_in_use(true, {}, &m_counts).ok());
    return m_counts.fragmented_bytes;
  }
  store_statfs_t space() {
    store_statfs_t space;
    bool per_pool_omap = false;
    EXPECT_EQ(0, m_store->pool_statfs(1, &space, &per_pool_omap));
    return space;
  }
  void check() {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    CheckResult result;
    ASSERT_TRUE(m_store->check({.deep = true}, &result).ok());
    EXPECT_EQ(0u, result.errors) << result.findings.front().text;
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
  }

  const ghobject_t m_oid = named("object"), m_other = named("other");
  DefragmentCounts m_counts;
};

}  // namespace

TEST_F(DataDefragmenterTest, AnObjectInPiecesLiesInOneSlotAfterwards) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  ASSERT_EQ(kObjectBytes, fragmented_bytes());
  EXPECT_GT(m_counts.pieces, 32u);
  EXPECT_EQ(0u, m_counts.moved_bytes);

  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(1u, m_counts.objects);
  EXPECT_EQ(kObjectBytes, m_counts.moved_bytes);
  EXPECT_EQ(m_counts.pieces, m_counts.moved_pieces_before);
  EXPECT_EQ(1u, m_counts.moved_pieces_after);
  EXPECT_EQ(bytes, read(m_oid));
  EXPECT_EQ(0u, fragmented_bytes());
  ASSERT_NO_FATAL_FAILURE(check());
  EXPECT_EQ(bytes, read(m_oid));
}

TEST_F(DataDefragmenterTest, WhatAClientWritesMeanwhileStays) {
  age(m_oid);
  remove(m_other);
  ASSERT_NO_FATAL_FAILURE(defragment([&] { write(m_oid, 5, "new"); }));
  EXPECT_EQ(1u, m_counts.changed_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  const std::string bytes = read(m_oid);
  EXPECT_EQ("new", bytes.substr(5, 3));
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(0u, fragmented_bytes());
  EXPECT_EQ(bytes, read(m_oid));
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(DataDefragmenterTest, WithoutALookAtTheExtentsTheTestAboveWouldNotice) {
  VTKV_NEEDS_MUTATIONS();
  age(m_oid);
  remove(m_other);
  const vtkv::ScopedMutation broken(Mutation::changed_object_defragmented);
  ASSERT_NO_FATAL_FAILURE(defragment([&] { write(m_oid, 5, "new"); }));
  EXPECT_NE("new", read(m_oid).substr(5, 3));
}

// Each of these may come when the data was read, and is not yet written.
TEST_F(DataDefragmenterTest, AnObjectThatGoesMeanwhileIsPassedOver) {
  const ghobject_t elsewhere = named("elsewhere");
  std::string bytes;
  const std::vector<std::function<void()>> changes{
      [&] {
        remove(m_oid);
        bytes.clear();
      },
      [&] {
        remove(m_oid);
        bytes = "another one";
        write(m_oid, 0, bytes);
      },
      [&] {
        ObjectStore::Transaction txn;
        txn.collection_move_rename(kPg, m_oid, kPg, elsewhere);
        queue(std::move(txn));
        bytes.clear();
      },
      [&] { clone(m_oid, elsewhere); },
      [&] {
        ObjectStore::Transaction txn;
        txn.truncate(kPg, m_oid, 12345);
        queue(std::move(txn));
        bytes.resize(12345);
      },
  };
  for (const auto& change : changes) {
    bytes = age(m_oid);
    remove(m_other);
    const std::string before = bytes;
    bool changed = false;
    ASSERT_NO_FATAL_FAILURE(defragment([&] {
      if (!std::exchange(changed, true)) {
        change();
      }
    }));
    ASSERT_TRUE(changed);
    EXPECT_EQ(1u, m_counts.changed_ranges);
    EXPECT_EQ(0u, m_counts.moved_bytes);
    ASSERT_NO_FATAL_FAILURE(check());
    EXPECT_EQ(bytes, m_store->exists(m_pg, m_oid) ? read(m_oid) : "");
    EXPECT_EQ(before, m_store->exists(m_pg, elsewhere) ? read(elsewhere) : before);
    remove(m_oid);
    remove(elsewhere);
  }
}

// Then it is another group's, and that one's lock tells who may change it.
TEST_F(DataDefragmenterTest, AnObjectThatASplitMovesMeanwhileIsPassedOver) {
  const coll_t half{spg_t(pg_t(1, 1))};
  ASSERT_EQ(1u, m_oid.hobj.get_hash() & 1);
  const std::string bytes = age(m_oid);
  remove(m_other);
  bool is_split = false;
  ObjectStore::CollectionHandle child;
  ASSERT_NO_FATAL_FAILURE(defragment([&] {
    if (!std::exchange(is_split, true)) {
      child = m_store->create_new_collection(half);
      ObjectStore::Transaction txn;
      txn.create_collection(half, 1);
      txn.split_collection(kPg, 1, 1, half);
      queue(std::move(txn));
    }
  }));
  ASSERT_TRUE(is_split);
  EXPECT_EQ(1u, m_counts.changed_ranges);
  EXPECT_EQ(kObjectBytes, m_counts.moved_bytes) << "of the new group, which comes later";
  ceph::bufferlist found;
  EXPECT_LE(0, m_store->read(child, m_oid, 0, 0, found));
  EXPECT_EQ(bytes, found.to_str());
  child.reset();
  ASSERT_NO_FATAL_FAILURE(check());
}

// More than are listed at once, of more than one group.
TEST_F(DataDefragmenterTest, EachObjectOfEachGroupIsLookedAtOnce) {
  const coll_t other_group{spg_t(pg_t(0, 2))};
  ObjectStore::CollectionHandle other = m_store->create_new_collection(other_group);
  ObjectStore::Transaction create;
  create.create_collection(other_group, 0);
  ASSERT_EQ(0, m_store->queue_transaction(other, std::move(create)));
  for (unsigned i = 0; i < 600; ++i) {
    ObjectStore::Transaction txn;
    txn.touch(kPg, named(std::to_string(i)));
    queue(std::move(txn));
  }
  ObjectStore::Transaction txn;
  txn.touch(other_group, ghobject_t(hobject_t(object_t("it"), "", CEPH_NOSNAP, 7, 2, "")));
  ASSERT_EQ(0, m_store->queue_transaction(other, std::move(txn)));
  EXPECT_EQ(0u, fragmented_bytes());
  EXPECT_EQ(601u, m_counts.objects);
}

TEST_F(DataDefragmenterTest, WhatAnObjectSharesWithItsCloneStaysShared) {
  const std::string before = age(m_oid);
  const ghobject_t snapshot = named("snapshot");
  clone(m_oid, snapshot);
  std::string bytes = before;
  for (uint64_t at = 0; at < kObjectBytes / 2; at += kBlockBytes) {  // its own, from here on
    const std::string block(kBlockBytes, 'X');
    write(m_oid, at, block);
    write(m_other, at, block);
    bytes.replace(at, kBlockBytes, block);
  }
  remove(m_other);
  const int64_t allocated = space().allocated;
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(kObjectBytes, m_counts.moved_bytes) << "half of either";
  EXPECT_EQ(allocated, space().allocated);
  EXPECT_EQ(bytes, read(m_oid));
  EXPECT_EQ(before, read(snapshot));
  ASSERT_NO_FATAL_FAILURE(check());
}

// Its extents say so for good that they may be shared.
TEST_F(DataDefragmenterTest, WhatACloneSharedThatIsGoneIsPutTogether) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  clone(m_oid, named("snapshot"));
  EXPECT_EQ(0u, fragmented_bytes());
  remove(named("snapshot"));
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(kObjectBytes, m_counts.moved_bytes);
  EXPECT_EQ(1u, m_counts.moved_pieces_after);
  EXPECT_EQ(bytes, read(m_oid));
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(DataDefragmenterTest, ABlockThatCannotBeReadIsLeftAsItIs) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  m_env.run_until_idle();
  m_store->flush_cache();
  // A block of what was written first, and not overwritten.
  m_env.flip_bits(kPath + "/cubes/0/containers/256K", kBlockBytes + 100, 1);
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(1u, m_counts.unreadable_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  write(m_oid, kBlockBytes, bytes.substr(kBlockBytes, kBlockBytes));
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(kObjectBytes, m_counts.moved_bytes);
  EXPECT_EQ(bytes, read(m_oid));
}

TEST_F(DataDefragmenterTest, ObjectsOfAnyShapeKeepWhatTheyHold) {
  uint64_t moved_bytes = 0, changed_ranges = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::string error;
    StoreWorkload workload(kPg, {.seed = seed, .objects = 8, .object_bytes_max = seed % 3 == 0 ? 6u << 20 : 200'000},
                           read_collection(*m_store, m_pg, &error));
    for (unsigned round = 0; round < 6; ++round) {
      for (unsigned i = 0; i < 12; ++i) {
        queue(workload.next());
      }
      ASSERT_NO_FATAL_FAILURE(defragment([&] { queue(workload.next()); }));
      moved_bytes += m_counts.moved_bytes;
      changed_ranges += m_counts.changed_ranges;
      const ModelCollection found = read_collection(*m_store, m_pg, &error);
      ASSERT_EQ("", error);
      ASSERT_EQ("", difference(workload.model(), found)) << "seed " << seed;
    }
    ASSERT_NO_FATAL_FAILURE(check()) << "seed " << seed;
  }
  EXPECT_GT(moved_bytes, 100u << 10);
  EXPECT_GT(changed_ranges, 2u);
}

namespace {

// Of which nothing more is to be had of the host.
class FullDefragmenterTest : public DataDefragmenterTest {
 protected:
  FullDefragmenterTest() : DataDefragmenterTest({{"swimstore_reserve_size", "33554432"}}) {}
};

}  // namespace

// What is free in the containers, a few MiB, has to be kept for those who cannot wait.
TEST_F(FullDefragmenterTest, NothingIsMoved) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  m_env.run_until_idle();
  vtkv::FileSystemInfo host;
  ASSERT_TRUE(m_env.file_system_info(kPath, &host).ok());
  m_env.set_capacity(host.total_bytes - host.available_bytes);
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(1u, m_counts.unplaced_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  EXPECT_EQ(bytes, read(m_oid));

  for (unsigned i = 0; i < 9; ++i) {
    age(named(std::to_string(i)));
  }
  remove(m_other);
  const vtkv::Status status = m_store->defragment_in_use(false, {}, &m_counts);
  EXPECT_NE(std::string::npos, status.message().find("no room")) << status.to_string();
  EXPECT_EQ(8u, m_counts.unplaced_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  m_env.set_capacity(host.total_bytes);
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(10 * kObjectBytes, m_counts.moved_bytes);
  ASSERT_NO_FATAL_FAILURE(check());
}

// What is free lies in single blocks: a new place would be no better, and the transaction is taken back.
TEST_F(DataDefragmenterTest, WhatWouldLieInAsManyPiecesAgainStaysWhereItIs) {
  constexpr unsigned kSmall = 895;  // which fill their container, with what is written next
  const auto small = [](unsigned i) { return named("small" + std::to_string(i)); };
  for (unsigned i = 0; i < kSmall; ++i) {
    write(small(i), 0, std::string(kBlockBytes, 's'));
  }
  const std::string bytes = age(m_oid);
  remove(m_other);
  m_env.run_until_idle();
  vtkv::FileSystemInfo host;
  ASSERT_TRUE(m_env.file_system_info(kPath, &host).ok());
  m_env.set_capacity(host.total_bytes - host.available_bytes + (3 << 20));
  constexpr uint64_t kChunkBytes = 4 << 20;
  for (const uint64_t bytes : {kObjectBytes, uint64_t{32} << 10, uint64_t{16} << 10, uint64_t{8} << 10}) {
    for (uint64_t i = bytes == kObjectBytes ? 1 : 0; i < kChunkBytes / bytes; ++i) {  // all that is left of their size
      write(named(std::to_string(bytes) + "-" + std::to_string(i)), 0, std::string(bytes, 'l'));
    }
  }
  for (unsigned i = 0; i < kSmall; i += 2) {
    remove(small(i));
  }
  m_env.run_until_idle();
  write(small(1), 0, std::string(kBlockBytes, 't'));  // what was freed is free behind it
  m_env.run_until_idle();
  ASSERT_NO_FATAL_FAILURE(defragment());
  EXPECT_EQ(1u, m_counts.unplaced_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  EXPECT_EQ(bytes, read(m_oid));
  write(m_oid, 5, "new");
  EXPECT_EQ("new", read(m_oid).substr(5, 3));
  EXPECT_EQ(bytes.substr(8), read(m_oid).substr(8));
  ASSERT_NO_FATAL_FAILURE(check());
}

namespace {

class CompressedDefragmenterTest : public DataDefragmenterTest {
 protected:
  CompressedDefragmenterTest() : DataDefragmenterTest({{"swimstore_compression_mode", "force"}}) {}
};

}  // namespace

TEST_F(CompressedDefragmenterTest, CompressedDataStaysAsItIs) {
  StoreWorkload workload(kPg, {.seed = 5, .compressible = true});
  uint64_t moved_bytes = 0;
  for (unsigned round = 0; round < 12; ++round) {
    for (unsigned i = 0; i < 10; ++i) {
      queue(workload.next());
    }
    const store_statfs_t before = space();
    ASSERT_NO_FATAL_FAILURE(defragment());
    moved_bytes += m_counts.moved_bytes;
    EXPECT_EQ(before.data_compressed, space().data_compressed);
    EXPECT_EQ(before.data_compressed_original, space().data_compressed_original);
    EXPECT_GT(before.data_compressed_original, 0);
    std::string error;
    ASSERT_EQ("", difference(workload.model(), read_collection(*m_store, m_pg, &error)));
    ASSERT_EQ("", error);
  }
  EXPECT_GT(moved_bytes, 0u);
  ASSERT_NO_FATAL_FAILURE(check());
}

namespace {

// Of three cubes; a group lies in one of the last two.
class MovedDefragmenterTest : public DataDefragmenterTest {
 protected:
  MovedDefragmenterTest() : DataDefragmenterTest({{"swimstore_cubes", "2"}}) {}
  unsigned home() { return home_of(*m_store, kPg); }
};

}  // namespace

// The copy would have to be made again, and goes on with what it saw of an object's extents.
TEST_F(MovedDefragmenterTest, WhatIsBeingCopiedToAnotherCubeIsPassedOver) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  unsigned times = 0;
  const unsigned to = 3 - home();
  const auto& group = static_cast<const Collection&>(*m_pg);
  const auto between = [&] {
    {
      const SharedLock lock(group.lock);
      if (!group.is_being_copied() || ++times > 20) {
        return;
      }
    }
    defragment();
    EXPECT_EQ(0u, m_counts.objects);
  };
  ASSERT_TRUE(m_store->move_in_use(kPg, to, {.batch_bytes = 1}, between).ok());
  EXPECT_GT(times, 3u);
  EXPECT_EQ(to, home());
  EXPECT_EQ(bytes, read(m_oid));
  ASSERT_NO_FATAL_FAILURE(check());
}

TEST_F(MovedDefragmenterTest, AGroupThatMovesMeanwhileIsPassedOver) {
  const std::string bytes = age(m_oid);
  remove(m_other);
  ASSERT_NO_FATAL_FAILURE(defragment([&] { EXPECT_TRUE(m_store->move_in_use(kPg, 3 - home(), {}, [] {}).ok()); }));
  EXPECT_EQ(1u, m_counts.changed_ranges);
  EXPECT_EQ(0u, m_counts.moved_bytes);
  EXPECT_EQ(bytes, read(m_oid));
  ASSERT_NO_FATAL_FAILURE(check());
}

}  // namespace swimstore
