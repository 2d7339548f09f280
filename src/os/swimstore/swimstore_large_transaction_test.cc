// SPDX-License-Identifier: LGPL-2.1-or-later
// A transaction that is larger than a segment of the log, on the host.
//
// SWIM_LARGE_OMAP_KEYS: how many keys the omap has that is cloned (default 20,000; each takes some 250 bytes).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/Cond.h"
#include "global/global_context.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

constexpr uint64_t kKeysPerTransaction = 10'000;
constexpr uint64_t kKeysOfSmallLogs = 100'000;  // more would be too many segments to hold open

uint64_t keys_wanted() {
  const char* const text = std::getenv("SWIM_LARGE_OMAP_KEYS");
  return text ? std::strtoull(text, nullptr, 10) : 20'000;
}

std::string key_of(uint64_t number) {
  std::string key = std::to_string(number);
  return "key_" + std::string(12 - key.size(), '0') + key;
}

class LargeTransactionTest : public ::testing::Test {
 protected:
  LargeTransactionTest() : m_path(std::filesystem::absolute("large_store")) {}

  void SetUp() override {
    if (m_keys > kKeysOfSmallLogs) {
      use_small_stores(g_ceph_context,
                       {{"swimstore_log_segment_size", "67108864"}, {"swimstore_memtable_size", "33554432"}});
    } else {
      use_small_stores(g_ceph_context);
    }
    std::filesystem::remove_all(m_path);  // of a run that was ended
    std::filesystem::create_directory(m_path);
    open();
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    m_handle = m_store->create_new_collection(m_cid);
    ObjectStore::Transaction create;
    create.create_collection(m_cid, 0);
    create.touch(m_cid, m_source);
    commit(std::move(create));
    fill();
  }
  void TearDown() override {
    m_handle.reset();
    ASSERT_EQ(0, m_store->umount());
    std::filesystem::remove_all(m_path);
  }
  void open() { m_store = std::make_unique<SwimStore>(g_ceph_context, m_path); }
  void remount() {
    m_handle.reset();
    ASSERT_EQ(0, m_store->umount());
    open();
    ASSERT_EQ(0, m_store->mount());
    m_handle = m_store->open_collection(m_cid);
    ASSERT_TRUE(m_handle);
  }
  void commit(ObjectStore::Transaction transaction) {
    C_SaferCond committed;
    transaction.register_on_commit(&committed);
    ASSERT_EQ(0, m_store->queue_transaction(m_handle, std::move(transaction)));
    ASSERT_EQ(0, committed.wait());
  }
  void fill() {
    ceph::bufferlist value;
    value.append(std::string(200, 'v'));
    for (uint64_t first = 0; first < m_keys; first += kKeysPerTransaction) {
      std::map<std::string, ceph::bufferlist> values;
      for (uint64_t i = first; i < std::min(m_keys, first + kKeysPerTransaction); ++i) {
        values[key_of(i)] = value;
      }
      ObjectStore::Transaction transaction;
      transaction.omap_setkeys(m_cid, m_source, values);
      commit(std::move(transaction));
    }
  }
  uint64_t keys_of(const ghobject_t& oid) {
    const auto iterator = m_store->omap_iterator(m_handle, oid);
    uint64_t count = 0;
    for (iterator->seek_to_first(); iterator->valid(); iterator->next(), ++count) {
      if (iterator->key() != key_of(count)) {
        return UINT64_MAX;
      }
    }
    return iterator->status() == 0 ? count : UINT64_MAX;
  }
  static ghobject_t named(const char* name) { return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 0, 0, "")); }

  const std::string m_path;
  const uint64_t m_keys = keys_wanted();
  const coll_t m_cid{spg_t(pg_t(0, 0))};
  const ghobject_t m_source = named("source"), m_clone = named("clone");
  std::unique_ptr<SwimStore> m_store;
  ObjectStore::CollectionHandle m_handle;
};

}  // namespace

TEST_F(LargeTransactionTest, ACloneOfALargeOmapIsWhole) {
  ObjectStore::Transaction clone;
  clone.clone(m_cid, m_source, m_clone);
  commit(std::move(clone));
  EXPECT_EQ(keys_of(m_clone), m_keys);
  remount();
  EXPECT_EQ(keys_of(m_clone), m_keys);
  EXPECT_EQ(keys_of(m_source), m_keys);

  ObjectStore::Transaction remove;
  remove.remove(m_cid, m_source);
  commit(std::move(remove));
  EXPECT_FALSE(m_store->exists(m_handle, m_source));
  EXPECT_EQ(keys_of(m_clone), m_keys);
}

}  // namespace swimstore
