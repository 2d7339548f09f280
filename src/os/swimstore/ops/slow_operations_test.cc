// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/slow_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/ceph_context.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SlowOperationsTest : public SimStoreFixture {
 protected:
  SlowOperationsTest() : SimStoreFixture({{"swimstore_slow_ops_warn_threshold", "1"}}) {}
  void TearDown() override {
    set("swimstore_log_op_age", "5");
    set("swimstore_slow_ops_warn_threshold", "1");
    set("swimstore_slow_ops_warn_lifetime", "86400");
    SimStoreFixture::TearDown();
  }
  void set(const char* option, const char* value) {
    g_ceph_context->_conf.set_val_or_die(option, value);
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  std::string alert() {
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    const auto found = alerts.find("SWIMSTORE_SLOW_OPERATIONS");
    return found == alerts.end() ? "" : found->second;
  }
  void write() {
    ceph::bufferlist data;
    data.append(std::string(4096, 'x'));
    ObjectStore::Transaction txn;
    txn.write(kPg, named("object"), 0, 4096, data);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
};

// In the simulator nothing takes longer than a few milliseconds: the limit comes down to it instead.
TEST_F(SlowOperationsTest, AreToldUntilTheirTimeIsOver) {
  write();
  EXPECT_EQ(alert(), "");
  set("swimstore_log_op_age", "0.000000001");
  set("swimstore_slow_ops_warn_lifetime", "600");
  write();
  set("swimstore_log_op_age", "5");
  EXPECT_THAT(alert(), HasSubstr(kPath));
  EXPECT_THAT(alert(), HasSubstr(" slow operations in the last 600 s, the last: "));
  EXPECT_GT(m_store->get_perf_counters()->get(l_swimstore_slow_operations), 0u);
  m_env.advance(599s);
  EXPECT_NE(alert(), "");
  m_env.advance(3s);
  EXPECT_EQ(alert(), "");
}

TEST_F(SlowOperationsTest, FewerThanTheThresholdAreNoAlert) {
  set("swimstore_log_op_age", "0.000000001");
  write();
  set("swimstore_log_op_age", "5");
  set("swimstore_slow_ops_warn_threshold", "1000");
  EXPECT_EQ(alert(), "");
  set("swimstore_slow_ops_warn_threshold", "0");
  EXPECT_EQ(alert(), "");
  set("swimstore_slow_ops_warn_threshold", "1");
  EXPECT_NE(alert(), "");
}

// As BlueStore's operators know it.
TEST_F(SlowOperationsTest, WithAnAgeOfZeroNothingIsSlow) {
  set("swimstore_log_op_age", "0");
  write();
  set("swimstore_log_op_age", "5");
  EXPECT_EQ(m_store->get_perf_counters()->get(l_swimstore_slow_operations), 0u);
  EXPECT_EQ(alert(), "");
}

// What has failed in the end, too.
TEST_F(SlowOperationsTest, AReadThatFailsIsTold) {
  write();
  m_store->flush_cache(nullptr);
  set("swimstore_log_op_age", "0.000000001");
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  ceph::bufferlist read;
  EXPECT_EQ(-EIO, m_store->read(m_pg, named("object"), 0, 4096, read));
  m_env.clear_faults();
  EXPECT_THAT(alert(), HasSubstr("the last: read of #1:e0000000:::object:head# took 0."));
}

TEST_F(SlowOperationsTest, TheObjectIsNamed) {
  write();
  set("swimstore_log_op_age", "0.000000001");
  m_store->flush_cache(nullptr);  // or the read takes no time here
  ceph::bufferlist read;
  EXPECT_EQ(4096, m_store->read(m_pg, named("object"), 0, 4096, read));
  EXPECT_THAT(alert(), HasSubstr("the last: read of #1:e0000000:::object:head# took 0."));
}

}  // namespace
}  // namespace swimstore
