// SPDX-License-Identifier: LGPL-2.1-or-later
// A placement group is split as an OSD does it when its pool gets more groups: into all of its children, by one
// transaction, in the order of their numbers.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include <fmt/format.h>

#include "osd/osd_types.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

constexpr int64_t kPool = 1;
constexpr unsigned kObjects = 200;

struct Split {
  const char* cubes;
  unsigned before, after;  // groups of the pool
};

class SplitTest : public SimStoreFixture, public ::testing::WithParamInterface<Split> {
 protected:
  SplitTest() : SimStoreFixture({{"swimstore_cubes", GetParam().cubes}}) {}
  ~SplitTest() override { use_small_stores(g_ceph_context); }

  // SimStoreFixture's own group would be one of them.
  void SetUp() override {
    SimStoreFixture::SetUp();
    ObjectStore::Transaction txn;
    txn.remove_collection(kPg);
    ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn)));
    m_pg.reset();
  }

  static coll_t cid(unsigned number) { return coll_t(spg_t(pg_t(number, kPool))); }
  static unsigned bits(unsigned number, unsigned groups) { return pg_t(number, kPool).get_split_bits(groups); }
  static ghobject_t oid(unsigned number) {
    return ghobject_t(
        hobject_t(object_t(fmt::format("object{}", number)), "", CEPH_NOSNAP, number * 2'654'435'761u, kPool, ""));
  }
  static unsigned owner(const ghobject_t& oid, unsigned groups) {
    return ceph_stable_mod(oid.hobj.get_hash(), groups, (1u << cbits(groups - 1)) - 1);
  }
  void queue(unsigned group, ObjectStore::Transaction txn) {
    ASSERT_EQ(0, m_store->queue_transaction(m_groups[group], std::move(txn)));
  }
  void create(unsigned number, unsigned groups) {
    m_groups[number] = m_store->create_new_collection(cid(number));
    ObjectStore::Transaction txn;
    txn.create_collection(cid(number), static_cast<int>(bits(number, groups)));
    queue(number, std::move(txn));
  }
  void write_all(unsigned groups) {
    for (unsigned number = 0; number < kObjects; ++number) {
      const unsigned group = owner(oid(number), groups);
      ceph::bufferlist data;
      data.append(std::to_string(number));
      ObjectStore::Transaction txn;
      txn.write(cid(group), oid(number), 0, data.length(), data);
      queue(group, std::move(txn));
    }
  }
  // OSD::split_pgs.
  void split(unsigned parent, unsigned before, unsigned after) {
    std::set<spg_t> children;
    if (!spg_t(pg_t(parent, kPool)).is_split(before, after, &children)) {
      return;
    }
    ObjectStore::Transaction txn;
    for (const spg_t& child : children) {
      const unsigned number = child.pgid.ps(), split_bits = child.get_split_bits(after);
      m_groups[number] = m_store->create_new_collection(cid(number));
      txn.create_collection(cid(number), static_cast<int>(split_bits));
      txn.split_collection(cid(parent), split_bits, number, cid(number));
    }
    queue(parent, std::move(txn));
  }
  void expect_all(unsigned groups) {
    for (unsigned number = 0; number < groups; ++number) {
      EXPECT_EQ(static_cast<int>(bits(number, groups)), m_store->collection_bits(m_groups[number])) << number;
      std::vector<ghobject_t> listed;
      ASSERT_EQ(0, m_store->collection_list(m_groups[number], ghobject_t(), ghobject_t::get_max(), 10 * kObjects,
                                            &listed, nullptr));
      for (const ghobject_t& found : listed) {
        EXPECT_EQ(number, owner(found, groups)) << found;
      }
      m_listed += listed.size();
    }
    EXPECT_EQ(kObjects, m_listed);
    for (unsigned number = 0; number < kObjects; ++number) {
      ceph::bufferlist data;
      EXPECT_LT(0, m_store->read(m_groups[owner(oid(number), groups)], oid(number), 0, 0, data));
      EXPECT_EQ(std::to_string(number), data.to_str());
    }
    m_listed = 0;
  }

  std::map<unsigned, ObjectStore::CollectionHandle> m_groups;
  size_t m_listed = 0;
};

TEST_P(SplitTest, IntoAllItsChildrenAtOnce) {
  const auto [cubes, before, after] = GetParam();
  for (unsigned number = 0; number < before; ++number) {
    create(number, before);
  }
  write_all(before);
  for (unsigned number = 0; number < before; ++number) {
    split(number, before, after);
  }
  expect_all(after);
  m_groups.clear();
  m_env.run_until_idle();
  ASSERT_EQ(0, m_store->umount());
  EXPECT_EQ(0, m_store->fsck(true));
  ASSERT_EQ(0, m_store->mount());
  for (unsigned number = 0; number < after; ++number) {
    m_groups[number] = m_store->open_collection(cid(number));
  }
  expect_all(after);
  m_groups.clear();
}

// What an OSD says that was down while a pool got fewer groups and then more.
TEST_P(SplitTest, BehindAMergeInTheSameTransaction) {
  const unsigned groups = GetParam().before;
  if (groups < 2) {
    return;
  }
  for (unsigned number = 0; number < groups; ++number) {
    create(number, groups);
  }
  write_all(groups);
  // The last one into its parent, which is split again at once.
  const unsigned source = groups - 1, target = source & ~(1u << (cbits(source) - 1));
  const unsigned merged_bits = bits(target, groups - 1), split_bits = bits(source, groups);
  ObjectStore::Transaction txn;
  txn.merge_collection(cid(source), cid(target), merged_bits);
  ASSERT_EQ(0, m_store->queue_transaction(m_groups[target], std::move(txn)));
  ObjectStore::Transaction again;
  m_groups[source] = m_store->create_new_collection(cid(source));
  again.create_collection(cid(source), static_cast<int>(split_bits));
  again.split_collection(cid(target), split_bits, source, cid(source));
  again.merge_collection(cid(source), cid(target), merged_bits);
  again.collection_set_bits(cid(target), merged_bits);
  queue(target, std::move(again));
  ObjectStore::Transaction last;
  m_groups[source] = m_store->create_new_collection(cid(source));
  last.collection_set_bits(cid(target), merged_bits);
  last.create_collection(cid(source), static_cast<int>(split_bits));
  last.split_collection(cid(target), split_bits, source, cid(source));
  queue(target, std::move(last));
  expect_all(groups);
  m_groups.clear();
}

std::string name_of(const ::testing::TestParamInfo<Split>& info) {
  return fmt::format("{}to{}in{}cubes", info.param.before, info.param.after, info.param.cubes);
}

INSTANTIATE_TEST_SUITE_P(Pools, SplitTest,
                         ::testing::Values(Split{"1", 1, 6}, Split{"4", 1, 6}, Split{"1", 8, 41}, Split{"4", 8, 41},
                                           Split{"1", 16, 88}, Split{"1", 3, 7}, Split{"1", 4, 8}),
                         name_of);

}  // namespace
}  // namespace swimstore
