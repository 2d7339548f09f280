// SPDX-License-Identifier: LGPL-2.1-or-later
// Pools whose writes are acknowledged before they are durable, in a simulated store (ops/pool_options.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "common/Cond.h"
#include "common/ceph_context.h"
#include "swimstore/ops/pool_options.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {

namespace {

constexpr std::chrono::milliseconds kSoon = vtkv::Submission::kRelaxedDelay;

class RelaxedTest : public SimStoreFixture {
 protected:
  RelaxedTest() : SimStoreFixture({{kRelaxedPoolsOption, "1"}}) {}
  ~RelaxedTest() override { use_small_stores(g_ceph_context, {{kRelaxedPoolsOption, ""}}); }

  void SetUp() override {
    SimStoreFixture::SetUp();
    m_commits = std::make_unique<StepwiseCommits>(&m_env);
    m_store->set_collection_commit_queue(kPg, m_commits->queue());
    m_env.run_until_idle();
  }
  void TearDown() override {
    m_env.advance(kSoon);
    if (m_pg) {
      m_store->set_collection_commit_queue(kPg, nullptr);
    }
    m_others.clear();
    SimStoreFixture::TearDown();
    EXPECT_EQ(0, m_store->fsck(true));
  }

  ObjectStore::CollectionHandle& create(const coll_t& cid) {
    ObjectStore::CollectionHandle& handle = m_others[cid] = m_store->create_new_collection(cid);
    m_store->set_collection_commit_queue(cid, m_commits->queue());
    ObjectStore::Transaction txn;
    txn.create_collection(cid, 0);
    m_store->queue_transaction(handle, std::move(txn));
    m_env.run_until_idle();
    return handle;
  }
  // Counts itself among what is acknowledged.
  void queue(ObjectStore::CollectionHandle& handle, ObjectStore::Transaction&& txn) {
    txn.register_on_commit(new LambdaContext([this, number = m_queued++](int) { m_acknowledged.push_back(number); }));
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  void write(ObjectStore::CollectionHandle& handle, const ghobject_t& oid, size_t length = 5000) {
    ObjectStore::Transaction txn;
    ceph::bufferlist data;
    data.append(std::string(length, 'x'));
    txn.write(handle->cid, oid, 0, data.length(), data);
    queue(handle, std::move(txn));
  }
  // As an OSD tells of a placement group's past, and of what a write changes.
  void set_key(const std::string& key) {
    spg_t pgid;
    ASSERT_TRUE(kPg.is_pg(&pgid));
    ObjectStore::Transaction txn;
    std::map<std::string, ceph::bufferlist> values;
    values[key].append("value");
    txn.touch(kPg, pgid.make_pgmeta_oid());
    txn.omap_setkeys(kPg, pgid.make_pgmeta_oid(), values);
    queue(m_pg, std::move(txn));
  }
  uint64_t syncs() const { return m_env.calls(vtkv::SimCall::sync); }
  std::string alert() {
    store_statfs_t ignored;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&ignored, &alerts));
    return alerts["SWIMSTORE_RELAXED_POOLS"];
  }

  std::unique_ptr<StepwiseCommits> m_commits;
  std::map<coll_t, ObjectStore::CollectionHandle> m_others;
  int m_queued = 0;
  std::vector<int> m_acknowledged;
};

}  // namespace

TEST(RelaxedPools, AreGivenByNumber) {
  std::set<int64_t> pools;
  EXPECT_TRUE(parse_relaxed_pools("", &pools).ok());
  EXPECT_TRUE(pools.empty());
  EXPECT_TRUE(parse_relaxed_pools("3, 17,4", &pools).ok());
  EXPECT_EQ(pools, (std::set<int64_t>{3, 4, 17}));
  for (const char* wrong : {"rbd", "3,x", "-1", "3x", "99999999999999999999"}) {
    const vtkv::Status status = parse_relaxed_pools(wrong, &pools);
    EXPECT_THAT(status.message(), testing::HasSubstr("option swimstore_relaxed_pools is '" + std::string(wrong)))
        << wrong;
    EXPECT_EQ(pools.size(), 3u);
  }
}

// With primed slots and without, where the data file has to be synced.
TEST_F(RelaxedTest, AWriteIsAcknowledgedWithoutAFlush) {
  for (const size_t length : {5000, 300'000}) {
    m_env.advance(kSoon);
    const uint64_t before = syncs();
    m_acknowledged.clear();
    write(m_pg, named("object"), length);
    m_env.run_until_idle();
    EXPECT_EQ(m_acknowledged.size(), 1u);
    EXPECT_EQ(syncs(), before) << length;
    m_env.advance(kSoon);
    EXPECT_GT(syncs(), before) << length;
    EXPECT_EQ(m_acknowledged.size(), 1u) << "it is told once";
  }
}

TEST_F(RelaxedTest, OtherPoolsAndErasureCodedOnesStayStrict) {
  for (const coll_t& cid : {coll_t(spg_t(pg_t(0, 2))), coll_t(spg_t(pg_t(0, 1), shard_id_t(1)))}) {
    ObjectStore::CollectionHandle& handle = create(cid);
    m_env.advance(kSoon);
    const uint64_t before = syncs();
    spg_t pgid;
    ASSERT_TRUE(cid.is_pg(&pgid));
    write(handle, ghobject_t(hobject_t(object_t("object"), "", CEPH_NOSNAP, 7, static_cast<int64_t>(pgid.pool()), ""),
                             ghobject_t::NO_GEN, pgid.shard));
    m_env.run_until_idle();
    EXPECT_GT(syncs(), before) << cid;
  }
  EXPECT_EQ(m_acknowledged.size(), 2u);
}

TEST_F(RelaxedTest, WhatPeeringGoesByStaysStrict) {
  const std::vector<std::pair<std::string, bool>> keys = {
      {"_fastinfo", false}, {"_info", true},    {"_biginfo", true},
      {"_epoch", true},     {"_infover", true}, {"0000000001.00000000000000000001", false}};
  for (const auto& [key, is_strict] : keys) {
    m_env.advance(kSoon);
    const uint64_t before = syncs();
    set_key(key);
    m_env.run_until_idle();
    EXPECT_EQ(syncs() > before, is_strict) << key;
  }
  EXPECT_EQ(m_acknowledged.size(), keys.size());
}

// A relaxed one behind a strict one could be told first.
TEST_F(RelaxedTest, CommitsOfACollectionAreToldInTheirOrder) {
  for (int i = 0; i < 30; ++i) {
    i % 3 == 1 ? set_key("_info") : write(m_pg, named("object"), i % 2 == 0 ? 5000 : 300'000);
    if (i % 4 == 0) {
      m_env.run_until_idle();
    }
  }
  m_env.advance(kSoon);
  ASSERT_EQ(m_acknowledged.size(), 30u);
  EXPECT_TRUE(std::is_sorted(m_acknowledged.begin(), m_acknowledged.end()));
}

// One change of a group's past makes its writes wait, but not for as long as they follow one another.
TEST_F(RelaxedTest, ABusyCollectionBecomesRelaxedAgain) {
  write(m_pg, named("object"));
  set_key("_info");
  for (int i = 0; i < 50; ++i) {
    write(m_pg, named("object"));
    m_env.advance(std::chrono::microseconds(50));  // the one before may still be under way
  }
  m_env.run_until_idle();
  EXPECT_EQ(m_acknowledged.size(), 52u) << "none waits for a flush that nobody needs";
  EXPECT_TRUE(std::is_sorted(m_acknowledged.begin(), m_acknowledged.end()));
}

// What is acknowledged and not durable counts no more: who waits for room could be who would bring the flush.
TEST_F(RelaxedTest, TheThrottleDoesNotWaitForAFlushThatNobodyNeeds) {
  g_ceph_context->_conf.set_val("swimstore_throttle_bytes", "300000");
  g_ceph_context->_conf.apply_changes(nullptr);
  const uint64_t before_us = m_env.now_us();
  for (int i = 0; i < 20; ++i) {
    write(m_pg, named("object"), 100'000);
  }
  EXPECT_LT(m_env.now_us() - before_us, 100'000u);
  g_ceph_context->_conf.set_val("swimstore_throttle_bytes", "67108864");
  g_ceph_context->_conf.apply_changes(nullptr);
}

TEST_F(RelaxedTest, AnUnmountDoesNotWaitForTheDelay) {
  write(m_pg, named("object"));
  m_env.run_until_idle();
  m_store->set_collection_commit_queue(kPg, nullptr);
  m_pg.reset();
  const uint64_t before_us = m_env.now_us();
  ASSERT_EQ(0, m_store->umount());
  EXPECT_LT(m_env.now_us() - before_us, 100'000u);
  ASSERT_EQ(0, m_store->mount());
}

TEST_F(RelaxedTest, FlushCommitWaitsUntilAllIsDurable) {
  write(m_pg, named("object"));
  m_env.run_until_idle();
  C_SaferCond durable;
  const uint64_t before = syncs();
  ASSERT_FALSE(m_pg->flush_commit(&durable));
  m_env.advance(kSoon);
  EXPECT_GT(syncs(), before);
  EXPECT_EQ(durable.wait_for(0), 0);
}

TEST_F(RelaxedTest, TheOptionIsFollowedWhileTheStoreServes) {
  EXPECT_THAT(alert(), testing::HasSubstr("writes of pools 1 are acknowledged before they are durable"));
  g_ceph_context->_conf.set_val(kRelaxedPoolsOption, "7");
  g_ceph_context->_conf.apply_changes(nullptr);
  m_env.advance(kSoon);
  uint64_t before = syncs();
  write(m_pg, named("object"));
  m_env.run_until_idle();
  EXPECT_GT(syncs(), before);
  g_ceph_context->_conf.set_val(kRelaxedPoolsOption, "1, rbd");
  g_ceph_context->_conf.apply_changes(nullptr);
  EXPECT_THAT(alert(), testing::HasSubstr("option swimstore_relaxed_pools is 7"))
      << "what cannot be parsed changes nothing";
  g_ceph_context->_conf.set_val(kRelaxedPoolsOption, "");
  g_ceph_context->_conf.apply_changes(nullptr);
  EXPECT_EQ(alert(), "");
  create(coll_t(spg_t(pg_t(0, 9), shard_id_t(0))));
  g_ceph_context->_conf.set_val(kRelaxedPoolsOption, "9");
  g_ceph_context->_conf.apply_changes(nullptr);
  EXPECT_THAT(alert(), testing::HasSubstr("pools 9 are erasure-coded and stay strict"));
}

TEST_F(RelaxedTest, AWrongOptionIsRefusedByName) {
  m_pg.reset();
  m_env.run_until_idle();
  ASSERT_EQ(0, m_store->umount());
  use_small_stores(g_ceph_context, {{kRelaxedPoolsOption, "rbd"}});
  const vtkv::Status status = m_store->try_mount();
  EXPECT_THAT(status.message(), testing::HasSubstr("option swimstore_relaxed_pools is 'rbd'"));
  use_small_stores(g_ceph_context, {{kRelaxedPoolsOption, ""}});
  ASSERT_EQ(0, m_store->mount());
}

}  // namespace swimstore
