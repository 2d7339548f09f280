// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/osd_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "common/code_environment.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OsdLimitsTest : public SimStoreFixture {
 protected:
  void TearDown() override {
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    for (const char* const option :
         {"osd_max_object_size", "osd_max_write_size", "objectstore_debug_throw_on_failed_txc"}) {
      g_ceph_context->_conf.rm_val(option);
    }
    g_ceph_context->_conf.apply_changes(nullptr);
    SimStoreFixture::TearDown();
  }
  static void set(const std::string& option, uint64_t value) {
    g_ceph_context->_conf.set_val_or_die(option, std::to_string(value));
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  static std::string refusal() { return std::string(check_osd_limits(g_ceph_context->_conf).message()); }
  std::string alert() {
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    return alerts.contains("SWIMSTORE_OPTION_ABOVE_LIMIT") ? alerts.at("SWIMSTORE_OPTION_ABOVE_LIMIT") : "";
  }
};

TEST_F(OsdLimitsTest, WhatCephAdmitsByItselfIsTaken) { EXPECT_EQ(refusal(), "ok"); }

TEST_F(OsdLimitsTest, OptionValueLimitAndRemedyAreNamed) {
  set("osd_max_object_size", 100ull << 30);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("osd_max_object_size is 107374182400"), HasSubstr("at most 4294967294"),
                               HasSubstr("'ceph config set osd osd_max_object_size 4294967294'")));
  set("osd_max_object_size", 4294967294);
  EXPECT_EQ(refusal(), "ok");
  set("osd_max_write_size", 1024);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("osd_max_write_size is 1024"), HasSubstr("at most 1023")));
}

TEST_F(OsdLimitsTest, NoOsdStartsAndToolsGoOn) {
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  set("osd_max_object_size", 4294967295);
  EXPECT_EQ(0, m_store->mount());
  ASSERT_EQ(0, m_store->umount());
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  EXPECT_EQ(-EINVAL, m_store->mount());
  g_code_env = CODE_ENVIRONMENT_UTILITY;
  ASSERT_TRUE(m_env.create_directory("/other").ok());
  EXPECT_EQ(-EINVAL, SwimStore(g_ceph_context, "/other", &m_env).mkfs());
  set("osd_max_object_size", 1 << 30);
  ASSERT_EQ(0, m_store->mount());
}

TEST_F(OsdLimitsTest, AnOptionThatIsRaisedLaterIsAnAlertAsLongAsItStands) {
  EXPECT_EQ(alert(), "");
  set("osd_max_object_size", 5'000'000'000);
  set("osd_max_write_size", 2000);
  EXPECT_THAT(alert(), AllOf(HasSubstr(kPath), HasSubstr("osd_max_object_size is 5000000000"),
                             HasSubstr("osd_max_write_size is 2000")));
  set("osd_max_object_size", 1 << 30);
  set("osd_max_write_size", 90);
  EXPECT_EQ(alert(), "");
}

// The largest object that the option may admit is one that the store takes, and the next one is not.
TEST_F(OsdLimitsTest, TheLimitIsTheStores) {
  const auto truncate = [this](uint64_t bytes) {
    ObjectStore::Transaction txn;
    txn.truncate(kPg, named("object"), bytes);
    return m_store->queue_transaction(m_pg, std::move(txn));
  };
  set("osd_max_object_size", kObjectBytesMax - 1);
  ASSERT_EQ(refusal(), "ok");
  ObjectStore::Transaction touch;
  touch.touch(kPg, named("object"));
  ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(touch)));
  EXPECT_EQ(0, truncate(kObjectBytesMax - 1));
  g_ceph_context->_conf.set_val_or_die("objectstore_debug_throw_on_failed_txc", "true");
  g_ceph_context->_conf.apply_changes(nullptr);
  EXPECT_THROW(truncate(kObjectBytesMax), int);
}

TEST_F(OsdLimitsTest, TheOsdLearnsHowLongNamesMayBe) {
  const auto named_so = [](size_t name, size_t key, size_t nspace) {
    hobject_t object;
    object.oid.name = std::string(name, 'n');
    object.set_key(std::string(key, 'k'));
    object.nspace = std::string(nspace, 's');
    return object;
  };
  EXPECT_EQ(0, m_store->validate_hobject_key(named_so(2048, 2048, 256)));  // Ceph's defaults
  EXPECT_EQ(0, m_store->validate_hobject_key(named_so(kObjectNameBytesMax - 2, 1, 1)));
  EXPECT_EQ(-ENAMETOOLONG, m_store->validate_hobject_key(named_so(kObjectNameBytesMax - 1, 1, 1)));
}

}  // namespace
}  // namespace swimstore
