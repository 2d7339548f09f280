// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/collection_locks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/ops/perf_counters.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

using Entries = std::map<std::string, ceph::bufferlist>;

// A placement group, and the OSD's own collection with the map that transactions of any group set keys of. Of one cube,
// and of several, where such a map lies in parts.
class CollectionLocksTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(m_path);
    std::filesystem::create_directory(m_path);
    use_small_stores(g_ceph_context, {{"swimstore_cubes", GetParam()}});
    ASSERT_EQ(0, m_store.mkfs());
    ASSERT_EQ(0, m_store.mount());
    m_group = m_store.create_new_collection(m_cid);
    m_meta = m_store.create_new_collection(coll_t::meta());
    ObjectStore::Transaction create, create_meta;
    create.create_collection(m_cid, 1);
    create_meta.create_collection(coll_t::meta(), 0);
    create_meta.touch(coll_t::meta(), m_map);
    ASSERT_EQ(0, m_store.queue_transaction(m_group, std::move(create)));
    ASSERT_EQ(0, m_store.queue_transaction(m_meta, std::move(create_meta)));
  }
  void TearDown() override {
    m_group.reset();
    m_meta.reset();
    ASSERT_EQ(0, m_store.umount());
    EXPECT_EQ(0, m_store.fsck(true));
    use_small_stores(g_ceph_context);
    std::filesystem::remove_all(m_path);
  }

  static std::string path_of_test() {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    return std::filesystem::absolute(name);
  }

  void set(ObjectStore::Transaction* txn, const std::string& key, const std::string& value) const {
    Entries entries;
    entries[key].append(value);
    txn->omap_setkeys(coll_t::meta(), m_map, entries);
  }
  void write(ObjectStore::Transaction* txn, char content = 'd') const {
    ceph::bufferlist data;
    data.append(std::string(kBlockBytes, content));
    txn->write(m_cid, m_oid, 0, data.length(), data);
  }
  std::string data() {
    ceph::bufferlist data;
    EXPECT_EQ(static_cast<int>(kBlockBytes), m_store.read(m_group, m_oid, 0, kBlockBytes, data));
    return data.to_str();
  }
  int queue(ObjectStore::Transaction&& txn) { return m_store.queue_transaction(m_group, std::move(txn)); }
  std::string entries() {
    ceph::bufferlist header;
    Entries entries;
    EXPECT_EQ(0, m_store.omap_get(m_meta, m_map, &header, &entries));
    std::string text;
    for (const auto& [key, value] : entries) {
      text += key + "=" + value.to_str() + " ";
    }
    return text;
  }
  uint64_t slots_planned() { return m_store.get_perf_counters()->get(l_swimstore_write_slots); }
  SharedMutex& meta_lock() { return static_cast<Collection&>(*m_meta).lock; }

  // Queues them while somebody else has the map's collection. How many slots were planned before they got its lock?
  uint64_t slots_without_meta(std::vector<ObjectStore::Transaction> transactions) {
    const uint64_t before = slots_planned();
    std::atomic<bool> queued{false};
    std::thread writer;
    uint64_t planned = 0;
    {
      ExclusiveLock lock(meta_lock());
      writer = std::thread([&] {
        EXPECT_EQ(0, m_store.queue_transactions(m_group, transactions));
        queued = true;
      });
      for (unsigned tries = 0; tries < 300 && planned == 0; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        planned = slots_planned() - before;
      }
      EXPECT_FALSE(queued);
    }
    writer.join();
    return planned;
  }

  // Tests run at once, each in a process of its own.
  const std::string m_path = path_of_test();
  const coll_t m_cid{spg_t(pg_t(1, 2))};
  const ghobject_t m_oid{hobject_t(object_t("object"), "", CEPH_NOSNAP, 1, 2, "")};
  const ghobject_t m_map{hobject_t(sobject_t(object_t("map"), CEPH_NOSNAP))};
  SwimStore m_store{g_ceph_context, m_path};
  ObjectStore::CollectionHandle m_group, m_meta;
};

// What it reads, compresses and waits for is not waited for by all other groups.
TEST_P(CollectionLocksTest, GroupIsPlannedBeforeTheLockOfOthersIsTaken) {
  ObjectStore::Transaction txn;
  write(&txn);
  set(&txn, "a", "1");
  std::vector<ObjectStore::Transaction> one;
  one.push_back(std::move(txn));
  EXPECT_EQ(1u, slots_without_meta(std::move(one)));
  EXPECT_EQ("a=1 ", entries());
}

// As a replica queues it.
TEST_P(CollectionLocksTest, AlsoWhereTheKeysComeFirst) {
  std::vector<ObjectStore::Transaction> two(2);
  set(&two[0], "a", "1");
  set(&two[0], "b", "2");
  two[0].omap_rmkeys(coll_t::meta(), m_map, std::set<std::string>{"a"});
  write(&two[1]);
  set(&two[1], "b", "3");
  EXPECT_EQ(1u, slots_without_meta(std::move(two)));
  EXPECT_EQ("b=3 ", entries());
}

// What does more than set and remove keys comes in its turn, and behind all that was put off.
TEST_P(CollectionLocksTest, OrderIsKept) {
  ObjectStore::Transaction txn;
  set(&txn, "a", "1");
  set(&txn, "b", "2");
  txn.touch(coll_t::meta(), m_map);
  set(&txn, "a", "3");
  txn.omap_rmkeys(coll_t::meta(), m_map, std::set<std::string>{"b"});
  write(&txn);
  set(&txn, "c", "4");
  ASSERT_EQ(0, queue(std::move(txn)));
  EXPECT_EQ("a=3 c=4 ", entries());
  EXPECT_TRUE(m_store.exists(m_group, m_oid));
}

// All that was planned is taken back, the blocks that it would have freed among it.
TEST_P(CollectionLocksTest, WhatCannotBeDoneIsRefused) {
  ObjectStore::Transaction first;
  write(&first, 'o');
  ASSERT_EQ(0, queue(std::move(first)));
  g_ceph_context->_conf.set_val_or_die("objectstore_debug_throw_on_failed_txc", "true");
  ObjectStore::Transaction txn;
  write(&txn);
  const ghobject_t missing(hobject_t(sobject_t(object_t("missing"), CEPH_NOSNAP)));
  txn.omap_rmkeys(coll_t::meta(), missing, std::set<std::string>{"a"});
  EXPECT_THROW(queue(std::move(txn)), int);
  g_ceph_context->_conf.set_val_or_die("objectstore_debug_throw_on_failed_txc", "false");
  EXPECT_EQ(std::string(kBlockBytes, 'o'), data());
  ObjectStore::Transaction again;
  write(&again, 'n');
  ASSERT_EQ(0, queue(std::move(again)));
  EXPECT_EQ(std::string(kBlockBytes, 'n'), data());
}

// Queued on either of the two that they name.
TEST_P(CollectionLocksTest, ManyAtOnce) {
  constexpr unsigned kTransactions = 200;
  std::thread others([this] {
    for (unsigned i = 0; i < kTransactions; ++i) {
      ObjectStore::Transaction txn;
      set(&txn, "of_meta", std::to_string(i));
      if (std::string(GetParam()) == "1") {  // else it would commit in another cube than the object's
        txn.touch(m_cid, m_oid);
      }
      EXPECT_EQ(0, m_store.queue_transaction(m_meta, std::move(txn)));
    }
  });
  for (unsigned i = 0; i < kTransactions; ++i) {
    ObjectStore::Transaction txn;
    set(&txn, "of_group", std::to_string(i));
    write(&txn);
    EXPECT_EQ(0, queue(std::move(txn)));
  }
  others.join();
  const std::string last = std::to_string(kTransactions - 1);
  EXPECT_EQ("of_group=" + last + " of_meta=" + last + " ", entries());
}

INSTANTIATE_TEST_SUITE_P(Cubes, CollectionLocksTest, ::testing::Values("1", "4"));

}  // namespace

}  // namespace swimstore
