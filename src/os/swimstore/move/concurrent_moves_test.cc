// SPDX-License-Identifier: LGPL-2.1-or-later
// Merges of placement groups across cubes by several threads at once, on the host: each move minds its own copies only.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <thread>

#include "common/Cond.h"
#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/transaction/placement.h"

namespace swimstore {

namespace {

constexpr unsigned kRounds = 12;
constexpr unsigned kMergers = 3;
constexpr unsigned kObjects = 12;
constexpr unsigned kCubes = 3;  // so that moves meet: two for groups

class ConcurrentMoves : public ::testing::Test {
 protected:
  // One pool of two groups, which a thread merges.
  struct Pool {
    int64_t number = 0;
    std::array<ObjectStore::CollectionHandle, 2> groups;
  };

  void SetUp() override {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "2"}, {"swimstore_slow_ops_warn_threshold", "0"}});
    m_path = std::filesystem::absolute("store");
    std::filesystem::create_directory(m_path);
    m_store = std::make_unique<SwimStore>(g_ceph_context, m_path);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
  }
  void TearDown() override {
    ASSERT_EQ(0, m_store->umount());
    EXPECT_EQ(0, m_store->fsck(true));
    use_small_stores(g_ceph_context);
  }

  static coll_t group(int64_t pool, unsigned number) { return coll_t(spg_t(pg_t(number, pool))); }
  static ghobject_t object(int64_t pool, unsigned number) {
    return ghobject_t(hobject_t(object_t("object_" + std::to_string(number)), "", CEPH_NOSNAP, number, pool, ""));
  }
  // What tells objects apart, in pools whose slots have the same addresses.
  static std::string content(int64_t pool, unsigned number) {
    return std::string(20000, static_cast<char>('a' + (pool * 7 + number) % 26)) + std::to_string(pool);
  }

  Pool make(int64_t number) {
    Pool pool{.number = number, .groups = {}};
    for (unsigned one = 0; one < 2; ++one) {
      pool.groups[one] = m_store->create_new_collection(group(number, one));
      ObjectStore::Transaction create;
      create.create_collection(group(number, one), 1);
      EXPECT_EQ(0, m_store->queue_transaction(pool.groups[one], std::move(create)));
    }
    for (unsigned one = 0; one < kObjects; ++one) {
      ceph::bufferlist data;
      data.append(content(number, one));
      ObjectStore::Transaction write;
      write.write(group(number, one % 2), object(number, one), 0, data.length(), data);
      EXPECT_EQ(0, m_store->queue_transaction(pool.groups[one % 2], std::move(write)));
    }
    return pool;
  }
  void merge(Pool& pool) {
    ObjectStore::Transaction merge;
    merge.merge_collection(group(pool.number, 1), group(pool.number, 0), 0);
    EXPECT_EQ(0, m_store->queue_transaction(pool.groups[0], std::move(merge)));
    pool.groups[1].reset();
  }
  void compare(Pool& pool) {
    for (unsigned one = 0; one < kObjects; ++one) {
      ceph::bufferlist data;
      ASSERT_GT(m_store->read(pool.groups[0], object(pool.number, one), 0, 0, data), 0) << pool.number << " " << one;
      ASSERT_EQ(content(pool.number, one), data.to_str());
    }
  }

  std::string m_path;
  std::unique_ptr<SwimStore> m_store;
};

TEST_F(ConcurrentMoves, LoseNothing) {
  for (unsigned round = 0; round < kRounds; ++round) {
    std::array<Pool, kMergers> pools;
    for (unsigned one = 0; one < kMergers; ++one) {
      const int64_t number = 10 + round * kMergers + one;
      ASSERT_NE(new_home(group(number, 0), kCubes), new_home(group(number, 1), kCubes));
      pools[one] = make(number);
    }
    std::vector<std::thread> mergers;
    for (Pool& pool : pools) {
      mergers.emplace_back([this, &pool] { merge(pool); });
    }
    for (std::thread& merger : mergers) {
      merger.join();
    }
    for (Pool& pool : pools) {
      ASSERT_NO_FATAL_FAILURE(compare(pool));
    }
  }
}

}  // namespace

}  // namespace swimstore
