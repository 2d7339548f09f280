// SPDX-License-Identifier: LGPL-2.1-or-later
// Read errors that Ceph's tests ask for: of one object by inject_data_error and inject_mdata_error, as inject_eio of
// ceph-helpers.sh does, or of one read in some.

#include <gtest/gtest.h>

#include "common/ceph_context.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr const char* kOptions[] = {"swimstore_debug_inject_read_err", "bluestore_debug_inject_read_err"};
constexpr const char* kRandomOptions[] = {"swimstore_debug_random_read_err", "bluestore_debug_random_read_err"};

class InjectedErrorsTest : public SimStoreFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SimStoreFixture::SetUp());
    write();
  }
  void TearDown() override {
    for (const char* option : kOptions) {
      set(option, "false");
    }
    for (const char* option : kRandomOptions) {
      set(option, "0");
    }
    SimStoreFixture::TearDown();
  }
  void set(const char* option, const char* value) {
    g_ceph_context->_conf.set_val_or_die(option, value);
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  void write() {
    ceph::bufferlist bytes;
    bytes.append(std::string(4096, 'x'));
    ObjectStore::Transaction txn;
    txn.remove(kPg, m_object);
    txn.write(kPg, m_object, 0, 4096, bytes);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
  int read(const ghobject_t& object) {
    ceph::bufferlist bytes;
    return m_store->read(m_pg, object, 0, 4096, bytes);
  }
  int stat() {
    struct stat st;
    return m_store->stat(m_pg, m_object, &st);
  }

  const ghobject_t m_object = named("object");
};

TEST_F(InjectedErrorsTest, NobodyInjectsUnlessItIsAllowed) {
  m_store->inject_data_error(m_object);
  m_store->inject_mdata_error(m_object);
  EXPECT_EQ(4096, read(m_object));
  EXPECT_EQ(0, stat());
}

TEST_F(InjectedErrorsTest, EitherNameOfTheOptionAllowsIt) {
  for (const char* option : kOptions) {
    set(option, "true");
    m_store->inject_data_error(m_object);
    EXPECT_EQ(-EIO, read(m_object)) << option;
    EXPECT_EQ(0, stat());
    m_store->inject_mdata_error(m_object);
    EXPECT_EQ(-EIO, stat()) << option;
    write();
    EXPECT_EQ(4096, read(m_object));
    EXPECT_EQ(0, stat());
    set(option, "false");
  }
}

TEST_F(InjectedErrorsTest, SomeReadsFailAtRandom) {
  for (const char* option : kRandomOptions) {
    set(option, "0.04");  // one in four
    unsigned failed = 0;
    for (unsigned i = 0; i < 1000; ++i) {
      failed += read(m_object) == -EIO;
    }
    EXPECT_GT(failed, 100u) << option;
    EXPECT_LT(failed, 500u) << option;
    set(option, "0");
    EXPECT_EQ(4096, read(m_object));
  }
}

}  // namespace
}  // namespace swimstore
