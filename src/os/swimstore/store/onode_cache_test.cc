// What the cache says of its memory, which osd_memory_target is kept by.

#include "swimstore/store/onode_cache.h"

#include <gtest/gtest.h>

#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr unsigned kObjects = 8;

class OnodeCacheTest : public SimStoreFixture {
 protected:
  // Onodes of 16 chunks each, and none in memory.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SimStoreFixture::SetUp());
    for (unsigned i = 0; i < kObjects; ++i) {
      ceph::bufferlist bytes;
      bytes.append(std::string(kBytes, 'x'));
      ObjectStore::Transaction txn;
      txn.write(kPg, object(i), 0, kBytes, bytes);
      m_store->queue_transaction(m_pg, std::move(txn));
      m_env.run_until_idle();
    }
    m_store->flush_cache(nullptr);
    ASSERT_EQ(0u, cached());
  }
  static ghobject_t object(unsigned i) { return named("object" + std::to_string(i)); }
  void stat(unsigned i) {
    struct stat st;
    EXPECT_EQ(0, m_store->stat(m_pg, object(i), &st));
  }
  uint64_t cached() {
    m_store->refresh_perf_counters();
    return m_store->get_perf_counters()->get(l_swimstore_onode_cache_bytes);
  }
  // What one chunk takes at least: checksums of 16 blocks and an extent.
  static constexpr uint64_t kChunkBytesMin = 100;
};

TEST_F(OnodeCacheTest, WhatAReadLoadsIsCounted) {
  stat(0);
  const uint64_t before = cached();
  ceph::bufferlist bytes;
  EXPECT_EQ(4096, m_store->read(m_pg, object(0), 0, 4096, bytes));
  const uint64_t one_chunk = cached();
  EXPECT_GE(one_chunk, before + kChunkBytesMin);
  EXPECT_EQ(static_cast<int>(kBytes), m_store->read(m_pg, object(0), 0, kBytes, bytes));
  EXPECT_GE(cached(), before + 16 * kChunkBytesMin);
  const uint64_t all = cached();
  EXPECT_EQ(static_cast<int>(kBytes), m_store->read(m_pg, object(0), 0, kBytes, bytes));
  EXPECT_EQ(cached(), all);
}

TEST_F(OnodeCacheTest, WhatAFiemapLoadsIsCounted) {
  stat(0);
  const uint64_t before = cached();
  std::map<uint64_t, uint64_t> extents;
  EXPECT_EQ(0, m_store->fiemap(m_pg, object(0), 0, kBytes, extents));
  EXPECT_GE(cached(), before + 16 * kChunkBytesMin);
}

}  // namespace
}  // namespace swimstore
