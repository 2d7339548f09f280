// SPDX-License-Identifier: LGPL-2.1-or-later
// What the cache says of its memory, which osd_memory_target is kept by.

#include "swimstore/object/onode_cache.h"

#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "swimstore/defragment/data_defragmenter.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr unsigned kObjects = 8;

class OnodeCacheTest : public SimStoreFixture {
 protected:
  // Onodes of 16 shards each, and none in memory.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SimStoreFixture::SetUp());
    for (unsigned i = 0; i < kObjects; ++i) {
      write(i, kBytes);
    }
    m_store->flush_cache(nullptr);
    ASSERT_EQ(0u, cached());
  }
  static ghobject_t object(unsigned i) { return named("object" + std::to_string(i)); }
  void write(unsigned i, uint64_t length) {
    ceph::bufferlist bytes;
    bytes.append(std::string(length, 'x'));
    ObjectStore::Transaction txn;
    txn.write(kPg, object(i), 0, length, bytes);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
  void stat(unsigned i) {
    struct stat st;
    EXPECT_EQ(0, m_store->stat(m_pg, object(i), &st));
  }
  uint64_t cached() {
    m_store->refresh_perf_counters();
    return m_store->get_perf_counters()->get(l_swimstore_onode_cache_bytes);
  }
  // What one shard takes at least: checksums of 16 blocks and an extent.
  static constexpr uint64_t kShardBytesMin = 100;
};

TEST_F(OnodeCacheTest, WhatAReadLoadsIsCounted) {
  stat(0);
  const uint64_t before = cached();
  ceph::bufferlist bytes;
  EXPECT_EQ(4096, m_store->read(m_pg, object(0), 0, 4096, bytes));
  const uint64_t one_shard = cached();
  EXPECT_GE(one_shard, before + kShardBytesMin);
  EXPECT_EQ(static_cast<int>(kBytes), m_store->read(m_pg, object(0), 0, kBytes, bytes));
  EXPECT_GE(cached(), before + 16 * kShardBytesMin);
  const uint64_t all = cached();
  EXPECT_EQ(static_cast<int>(kBytes), m_store->read(m_pg, object(0), 0, kBytes, bytes));
  EXPECT_EQ(cached(), all);
}

TEST_F(OnodeCacheTest, WhatAFiemapLoadsIsCounted) {
  stat(0);
  const uint64_t before = cached();
  std::map<uint64_t, uint64_t> extents;
  EXPECT_EQ(0, m_store->fiemap(m_pg, object(0), 0, kBytes, extents));
  EXPECT_GE(cached(), before + 16 * kShardBytesMin);
}

TEST_F(OnodeCacheTest, WhatIsRemovedOrRenamedIsCountedNoMore) {
  const uint64_t before = cached();
  ObjectStore::Transaction remove;
  remove.remove(kPg, object(0));
  m_store->queue_transaction(m_pg, std::move(remove));
  m_env.run_until_idle();
  EXPECT_LT(cached(), before + 16 * kShardBytesMin);
  ObjectStore::Transaction rename;
  rename.try_rename(kPg, object(1), object(kObjects));
  m_store->queue_transaction(m_pg, std::move(rename));
  m_env.run_until_idle();
  EXPECT_LT(cached(), before + 2 * 16 * kShardBytesMin);
}

// What is looked at of a hole takes no memory that nobody counts.
TEST_F(OnodeCacheTest, WhoLooksAtAllExtentsOfASparseObjectLeavesItAsItIs) {
  constexpr uint64_t kSparseBytes = 4 << 20;
  ObjectStore::Transaction txn;
  ceph::bufferlist block;
  block.append(std::string(4096, 'x'));
  txn.write(kPg, object(kObjects), kSparseBytes - 4096, 4096, block);
  m_store->queue_transaction(m_pg, std::move(txn));
  m_env.run_until_idle();
  const uint64_t before = cached();
  DefragmentCounts counts;
  EXPECT_TRUE(m_store->defragment_in_use(true, {}, &counts).ok());
  const uint64_t looked_at = cached();
  ObjectStore::Transaction change;  // counts it anew
  change.set_alloc_hint(kPg, object(kObjects), kSparseBytes, kSparseBytes, 0);
  m_store->queue_transaction(m_pg, std::move(change));
  m_env.run_until_idle();
  EXPECT_LT(cached(), looked_at + kShardBytesMin);
  EXPECT_LT(before, looked_at);  // of the other objects
}

// The first clone changes its source, whose extents are shared from then on; the second only reads it.
TEST_F(OnodeCacheTest, WhatACloneLoadsOfItsSourceIsCounted) {
  const auto clone = [this](unsigned to) {
    ObjectStore::Transaction txn;
    txn.clone(kPg, object(0), object(to));
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  };
  clone(kObjects);
  m_store->flush_cache(nullptr);
  ASSERT_EQ(0u, cached());
  clone(kObjects + 1);
  EXPECT_GE(cached(), 2 * 16 * kShardBytesMin);
}

// A cache that has room for less than one object's extents in each of its shards.
class SmallOnodeCacheTest : public OnodeCacheTest {
 protected:
  static constexpr unsigned kMany = 100;
  static constexpr uint64_t kShards = 16;

  SmallOnodeCacheTest() { use_small_stores(g_ceph_context, {{"swimstore_cache_size", "65536"}}); }
};

TEST_F(SmallOnodeCacheTest, WhatReadsLoadIsDroppedWhenItIsTooMuch) {
  for (unsigned i = kObjects; i < kMany; ++i) {
    write(i, kBytes / 2);
  }
  m_store->flush_cache(nullptr);
  const auto read = [this](unsigned i) {
    ceph::bufferlist bytes;
    EXPECT_EQ(static_cast<int>(kBytes / 2), m_store->read(m_pg, object(i), 0, kBytes / 2, bytes));
  };
  read(0);
  const uint64_t one = cached();
  for (unsigned i = 1; i < kMany; ++i) {
    read(i);
  }
  // What was in use when its extents were loaded stays until the next of its shard.
  EXPECT_LE(cached(), kShards * one * 3 / 2);
}

// A cache that has room for a third of the objects.
class FullOnodeCacheTest : public OnodeCacheTest {
 protected:
  static constexpr unsigned kMany = 400;
  static constexpr unsigned kInUse = 4;

  FullOnodeCacheTest() { use_small_stores(g_ceph_context, {{"swimstore_cache_size", "524288"}}); }
  uint64_t misses(unsigned first, unsigned end) {
    return misses_of([=, this] {
      for (unsigned i = first; i < end; ++i) {
        stat(i);
      }
    });
  }
  uint64_t misses_of(const std::function<void()>& look) {
    m_store->refresh_perf_counters();
    const uint64_t before = m_store->get_perf_counters()->get(l_swimstore_onode_misses);
    look();
    m_store->refresh_perf_counters();
    return m_store->get_perf_counters()->get(l_swimstore_onode_misses) - before;
  }
  // None of them in memory.
  void make_many() {
    for (unsigned i = 0; i < kMany; ++i) {
      ObjectStore::Transaction txn;
      if (i < kObjects) {
        txn.remove(kPg, object(i));  // whose extents take more than all the others
      }
      txn.touch(kPg, object(i));
      ceph::bufferlist value;
      value.append(std::string(512, 'v'));
      txn.setattr(kPg, object(i), "value", value);
      m_store->queue_transaction(m_pg, std::move(txn));
    }
    m_env.run_until_idle();
    m_store->flush_cache(nullptr);
  }
};

TEST_F(FullOnodeCacheTest, WhatIsLookedUpNowAndThenOutlivesWhatIsNot) {
  make_many();
  EXPECT_EQ(kInUse, misses(0, kInUse));
  for (unsigned i = kInUse; i < kMany; ++i) {
    EXPECT_EQ(1u, misses(i, i + 1));
    EXPECT_EQ(0u, misses(i % kInUse, i % kInUse + 1)) << i;
  }
  EXPECT_LT(kMany / 4, misses(kInUse, kMany));  // all do not fit
}

TEST_F(FullOnodeCacheTest, WhoGoesThroughAllObjectsDoesNotPushOutWhatIsInUse) {
  make_many();
  EXPECT_EQ(kInUse, misses(0, kInUse));
  DefragmentCounts counts;
  EXPECT_EQ(kMany - kInUse, misses_of([&] { EXPECT_TRUE(m_store->defragment_in_use(true, {}, &counts).ok()); }));
  EXPECT_EQ(kMany, counts.objects);
  EXPECT_EQ(0u, misses(0, kInUse));
  EXPECT_LT(kMany / 4, misses(kInUse, kMany));  // all do not fit
  EXPECT_LT(0u, misses(0, kInUse));             // and others push them out
}

// All that is there was looked up: who needs room passes over the eight oldest, and the ninth goes.
TEST_F(FullOnodeCacheTest, NotAllThatWasLookedUpHasAnotherRound) {
  make_many();  // with one hash, so that they meet in one shard
  std::optional<unsigned> gone;
  unsigned there = 0;
  for (; !gone && there < kMany; ++there) {
    stat(there);
    for (unsigned i = 0; i <= there && !gone; ++i) {
      gone = misses(i, i + 1) > 0 ? std::optional(i) : std::nullopt;
    }
  }
  EXPECT_GT(there, 9u);
  EXPECT_EQ(gone, 8u);
}

}  // namespace
}  // namespace swimstore
