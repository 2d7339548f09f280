// SPDX-License-Identifier: LGPL-2.1-or-later
// Transactions that are not carried out.

#include <gtest/gtest.h>

#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {

namespace {

class UndecodableTest : public SimStoreFixture {
 protected:
  UndecodableTest() { throw_on_failed(true); }
  ~UndecodableTest() override { throw_on_failed(false); }

  static void throw_on_failed(bool value) {
    g_ceph_context->_conf.set_val_or_die("objectstore_debug_throw_on_failed_txc", value ? "true" : "false");
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  // An attribute whose name is longer than the transaction.
  static ObjectStore::Transaction undecodable() {
    ObjectStore::Transaction whole;
    ceph::bufferlist data, encoded;
    data.append(std::string(4096, 'd'));
    whole.write(kPg, named("object"), 0, data.length(), data);
    whole.setattr(kPg, named("object"), "attribute", data);
    whole.encode(encoded);
    std::string bytes = encoded.to_str();
    bytes[bytes.find("attribute") - 1] = 0x7f;  // the length's last byte
    ceph::bufferlist damaged;
    damaged.append(bytes);
    auto from = damaged.cbegin();
    ObjectStore::Transaction decoded;
    decoded.decode(from);
    return decoded;
  }
};

}  // namespace

// The fixture's umount waits for whatever counts as under way.
TEST_F(UndecodableTest, ATransactionLeavesNothingBehind) {
  EXPECT_THROW(m_store->queue_transaction(m_pg, undecodable()), int);
  EXPECT_FALSE(m_store->exists(m_pg, named("object")));
  m_env.run_until_idle();
  m_store->refresh_perf_counters();
  EXPECT_EQ(0u, m_store->get_perf_counters()->get(l_swimstore_throttle_bytes));
}

TEST_F(UndecodableTest, WhereNothingIsThrownTheProcessAbortsAndSaysWhy) {
  throw_on_failed(false);
  EXPECT_DEATH(m_store->queue_transaction(m_pg, undecodable()), "a transaction cannot be carried out");
}

// What Ceph's tests of divergent logs rely on.
TEST_F(SimStoreFixture, WhatTheBlackHoleGetsIsNeitherAppliedNorAcknowledged) {
  const auto set_black_hole = [](const char* value) {
    g_ceph_context->_conf.set_val_or_die("objectstore_blackhole", value);
    g_ceph_context->_conf.apply_changes(nullptr);
  };
  bool acknowledged = false;
  ObjectStore::Transaction transaction;
  transaction.touch(kPg, named("object"));
  transaction.register_on_commit(new LambdaContext([&](int) { acknowledged = true; }));
  set_black_hole("true");
  EXPECT_EQ(0, m_store->queue_transaction(m_pg, std::move(transaction)));
  set_black_hole("false");
  m_env.run_until_idle();
  EXPECT_FALSE(m_store->exists(m_pg, named("object")));
  EXPECT_FALSE(acknowledged);
}

}  // namespace swimstore
