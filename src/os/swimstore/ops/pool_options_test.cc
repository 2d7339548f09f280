// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/pool_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PoolOptions, WhatTheStoreDoesAnywayIsObeyed) {
  pool_opts_t options;
  EXPECT_EQ(describe_ignored(options), "");
  options.set(pool_opts_t::CSUM_TYPE, int64_t{4});                       // crc32c
  options.set(pool_opts_t::CSUM_MIN_BLOCK, int64_t{512});
  options.set(pool_opts_t::CSUM_MAX_BLOCK, int64_t{65536});
  options.set(pool_opts_t::SCRUB_PRIORITY, int64_t{3});
  EXPECT_EQ(describe_ignored(options), "");
}

TEST(PoolOptions, WhatItDoesNotDoIsNamed) {
  pool_opts_t options;
  options.set(pool_opts_t::CSUM_TYPE, int64_t{3});
  options.set(pool_opts_t::CSUM_MIN_BLOCK, int64_t{8192});
  options.set(pool_opts_t::CSUM_MAX_BLOCK, int64_t{512});
  const std::string text = describe_ignored(options);
  for (const char* word : {"csum_type xxhash64", "csum_min_block 8192", "csum_max_block 512"}) {
    EXPECT_THAT(text, HasSubstr(word));
  }
  options.set(pool_opts_t::CSUM_TYPE, int64_t{99});
  EXPECT_THAT(describe_ignored(options), HasSubstr("csum_type 99"));
}

class PoolOptionsAlertTest : public SimStoreFixture {
 protected:
  std::string alert() {
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    const auto found = alerts.find("SWIMSTORE_POOL_OPTIONS");
    return found == alerts.end() ? "" : found->second;
  }
};

// As an OSD does it with a placement group that is new to it: before the transaction that makes the collection.
TEST_F(PoolOptionsAlertTest, IsOfAGroupThatIsStillToBeMadeToo) {
  pool_opts_t options;
  options.set(pool_opts_t::CSUM_TYPE, int64_t{3});
  const coll_t cid(spg_t(pg_t(0, 5)));
  ObjectStore::CollectionHandle group = m_store->create_new_collection(cid);
  EXPECT_EQ(0, m_store->set_collection_opts(group, options));
  ObjectStore::Transaction txn;
  txn.create_collection(cid, 0);
  ASSERT_EQ(0, m_store->queue_transaction(group, std::move(txn)));
  EXPECT_THAT(alert(), HasSubstr("pool 5: csum_type xxhash64"));
  group.reset();
}

TEST_F(PoolOptionsAlertTest, LastsAsLongAsTheOptionAndThePool) {
  pool_opts_t options;
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
  EXPECT_EQ(alert(), "");
  options.set(pool_opts_t::CSUM_TYPE, int64_t{3});
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
  EXPECT_THAT(alert(), HasSubstr("pool 1: csum_type xxhash64"));
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, pool_opts_t()));
  EXPECT_EQ(alert(), "");
  EXPECT_EQ(0, m_store->set_collection_opts(m_pg, options));
  ObjectStore::Transaction txn;
  txn.remove_collection(kPg);
  m_store->queue_transaction(m_pg, std::move(txn));
  EXPECT_EQ(alert(), "");
}

}  // namespace
}  // namespace swimstore
