// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores of several cubes, in the simulated host.

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "common/Cond.h"
#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/superblock.h"
#include "swimstore/fsck/finding.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/move/group_balance.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/testing/store_workload.h"
#include "swimstore/transaction/placement.h"

namespace swimstore {

namespace {

coll_t pg(unsigned number, uint64_t pool = 1) { return coll_t(spg_t(pg_t(number, pool))); }

// Waits for its completion.
class Committed final : public Context {
 public:
  explicit Committed(unsigned* order, unsigned* at) : m_order(order), m_at(at) {}

 private:
  void finish(int) override { *m_at = ++*m_order; }
  unsigned* const m_order;
  unsigned* const m_at;
};

class CubesTest : public SimStoreFixture {
 protected:
  CubesTest() : SimStoreFixture({{"swimstore_cubes", "4"}}) {}

  void TearDown() override {
    m_handles.clear();
    SimStoreFixture::TearDown();
    EXPECT_EQ(0, m_store->fsck(true));
    use_small_stores(g_ceph_context);
  }

  ObjectStore::CollectionHandle& handle(const coll_t& cid) {
    ObjectStore::CollectionHandle& known = m_handles[cid];
    if (!known) {
      known = m_store->open_collection(cid);
    }
    return known;
  }
  void queue(const coll_t& on, ObjectStore::Transaction&& transaction) {
    ASSERT_EQ(0, m_store->queue_transaction(handle(on), std::move(transaction)));
  }
  void create(const coll_t& cid, unsigned bits) {
    m_handles[cid] = m_store->create_new_collection(cid);
    ObjectStore::Transaction create;
    create.create_collection(cid, bits);
    queue(cid, std::move(create));
  }
  void remount() {
    m_pg.reset();
    m_handles.clear();
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
  }
  unsigned home(const coll_t& cid) { return home_of(*m_store, cid); }
  static ghobject_t object(const coll_t& cid, const std::string& name, uint32_t hash) {
    spg_t pgid;
    EXPECT_TRUE(cid.is_pg(&pgid));
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, hash, static_cast<int64_t>(pgid.pool()), ""));
  }
  static ceph::bufferlist bytes(size_t length, char fill) {
    ceph::bufferlist data;
    data.append(std::string(length, fill));
    return data;
  }
  void write(const coll_t& cid, const ghobject_t& oid, size_t length, char fill) {
    ObjectStore::Transaction txn;
    ceph::bufferlist data = bytes(length, fill);
    txn.write(cid, oid, 0, length, data);
    queue(cid, std::move(txn));
  }
  std::string read(const coll_t& cid, const ghobject_t& oid) {
    ceph::bufferlist data;
    auto& collection = handle(cid);
    const int r = m_store->read(collection, oid, 0, 0, data);
    return r < 0 ? "error " + std::to_string(r) : data.to_str();
  }

  std::map<coll_t, ObjectStore::CollectionHandle> m_handles;
};

TEST(Placement, SpreadsGroupsOverTheDataCubes) {
  for (const uint64_t pool : {1, 2, 17}) {
    std::map<unsigned, unsigned> groups;
    for (unsigned number = 0; number < 64; ++number) {
      ++groups[new_home(pg(number, pool), 5)];
    }
    EXPECT_EQ(groups, (std::map<unsigned, unsigned>{{1, 16}, {2, 16}, {3, 16}, {4, 16}})) << pool;
  }
}

// A pool is shrunk by merging group n + groups into group n.
TEST(Placement, GroupsThatMergeLieTogetherWhileThereAreManyOfThem) {
  for (unsigned groups = 32; groups >= 4; groups /= 2) {
    for (unsigned number = 0; number < groups; ++number) {
      EXPECT_EQ(new_home(pg(number), 5), new_home(pg(number + groups), 5)) << number << " of " << groups;
    }
  }
}

TEST(Placement, OneCubeHasEverything) {
  EXPECT_EQ(new_home(pg(5), 1), 0u);
  EXPECT_EQ(new_home(coll_t::meta(), 9), 0u);
}

TEST_F(CubesTest, EachGroupKeepsItsHomeOverARemount) {
  std::map<coll_t, unsigned> homes;
  create(coll_t::meta(), 0);
  homes[coll_t::meta()] = home(coll_t::meta());
  EXPECT_EQ(homes[coll_t::meta()], 0u);
  std::set<unsigned> used;
  for (unsigned number = 0; number < 8; ++number) {
    const coll_t cid = pg(number, 2);
    create(cid, 3);
    write(cid, object(cid, "object", number), 10000, static_cast<char>('a' + number));
    used.insert(homes[cid] = home(cid));
  }
  EXPECT_EQ(used, (std::set<unsigned>{1, 2, 3, 4}));
  remount();
  for (const auto& [cid, cube] : homes) {
    EXPECT_EQ(home(cid), cube) << cid;
  }
  for (unsigned number = 0; number < 8; ++number) {
    const coll_t cid = pg(number, 2);
    EXPECT_EQ(read(cid, object(cid, "object", number)), std::string(10000, static_cast<char>('a' + number)));
  }
}

// Slots of two cubes have the same addresses: what is in memory of one is never taken for the other's.
TEST_F(CubesTest, TheSameSlotOfTwoCubesIsTwoSlots) {
  for (unsigned number = 0; number < 4; ++number) {
    const coll_t cid = pg(number, 3);
    create(cid, 2);
    write(cid, object(cid, "object", number), 4096, static_cast<char>('a' + number));
  }
  for (const bool in_flight : {true, false}) {
    for (unsigned number = 0; number < 4; ++number) {
      const coll_t cid = pg(number, 3);
      EXPECT_EQ(read(cid, object(cid, "object", number)), std::string(4096, static_cast<char>('a' + number)))
          << in_flight;
    }
    m_env.run_until_idle();
  }
}

TEST_F(CubesTest, TheChildOfASplitLiesWhereItsParentDoes) {
  const coll_t parent = pg(0, 4), child = pg(1, 4);
  create(parent, 0);
  write(parent, object(parent, "stays", 0), 5000, 's');
  write(parent, object(parent, "goes", 1), 5000, 'g');
  m_handles[child] = m_store->create_new_collection(child);
  ObjectStore::Transaction split;
  split.create_collection(child, 1);
  split.split_collection(parent, 1, 1, child);
  queue(parent, std::move(split));
  EXPECT_EQ(home(child), home(parent));
  EXPECT_NE(home(child), new_home(child, 5)) << "else this shows nothing";
  remount();
  EXPECT_EQ(read(child, object(child, "goes", 1)), std::string(5000, 'g'));
  EXPECT_EQ(read(parent, object(parent, "stays", 0)), std::string(5000, 's'));
}

// As an OSD removes temporary objects of a group: queued on the handle of its own collection.
TEST_F(CubesTest, ATransactionCommitsWhereWhatItNamesLies) {
  create(coll_t::meta(), 0);
  const coll_t cid = pg(2, 5);
  create(cid, 2);
  write(cid, object(cid, "object", 2), 4096, 'x');
  ObjectStore::Transaction remove;
  remove.remove(cid, object(cid, "object", 2));
  queue(coll_t::meta(), std::move(remove));
  remount();
  auto& collection = handle(cid);
  EXPECT_FALSE(m_store->exists(collection, object(cid, "object", 2)));
}

// Whatever cubes they commit in.
TEST_F(CubesTest, CommitsOfOneCollectionAreToldInTheirOrder) {
  create(coll_t::meta(), 0);
  const coll_t first = pg(0, 6), second = pg(1, 6);
  create(first, 1);
  create(second, 1);
  ASSERT_NE(home(first), home(second));
  StepwiseCommits commits(&m_env);
  m_store->set_collection_commit_queue(coll_t::meta(), commits.queue());
  unsigned order = 0;
  std::array<unsigned, 6> at{};
  for (unsigned i = 0; i < at.size(); ++i) {
    const coll_t& cid = i % 2 == 0 ? first : second;
    ObjectStore::Transaction txn;
    ceph::bufferlist data = bytes(i % 2 == 0 ? 400000 : 100, 'x');
    txn.write(cid, object(cid, "object", i % 2), 0, data.length(), data);
    txn.register_on_commit(new Committed(&order, &at[i]));
    queue(coll_t::meta(), std::move(txn));
  }
  m_env.run_until_idle();
  for (unsigned i = 0; i < at.size(); ++i) {
    EXPECT_EQ(at[i], i + 1);
  }
  m_store->set_collection_commit_queue(coll_t::meta(), nullptr);
}

// An OSD removes a map when its groups have said that they need it no more: a crash must not keep the removal alone.
TEST_F(CubesTest, WhatIsRemovedFromMetaFollowsWhatWasQueuedInOtherCubes) {
  create(coll_t::meta(), 0);
  const ghobject_t map(hobject_t(sobject_t(object_t("map"), 0)));
  ObjectStore::Transaction touch;
  touch.touch(coll_t::meta(), map);
  queue(coll_t::meta(), std::move(touch));
  const coll_t cid = pg(1, 10);
  create(cid, 1);
  m_env.run_until_idle();
  StepwiseCommits commits(&m_env);
  m_store->set_collection_commit_queue(cid, commits.queue());
  unsigned order = 0, said = 0;
  ObjectStore::Transaction says;
  ceph::bufferlist data = bytes(300000, 'x');
  says.write(cid, object(cid, "object", 1), 0, data.length(), data);
  says.register_on_commit(new Committed(&order, &said));
  queue(cid, std::move(says));
  ASSERT_EQ(said, 0u) << "else this shows nothing";
  ObjectStore::Transaction remove;
  remove.remove(coll_t::meta(), map);
  queue(coll_t::meta(), std::move(remove));
  auto& collection = handle(cid);
  C_SaferCond waiter;
  EXPECT_TRUE(collection->flush_commit(&waiter)) << "what the group said is durable by now";
  m_env.run_until_idle();
  m_store->set_collection_commit_queue(cid, nullptr);
}

TEST_F(CubesTest, WhatIsStoredIsCountedOverAllCubes) {
  store_statfs_t before, after;
  ASSERT_EQ(0, m_store->statfs(&before));
  for (unsigned number = 0; number < 4; ++number) {
    const coll_t cid = pg(number, 7);
    create(cid, 2);
    write(cid, object(cid, "object", number), 8192, 'x');
  }
  m_env.run_until_idle();
  ASSERT_EQ(0, m_store->statfs(&after));
  EXPECT_EQ(after.data_stored, before.data_stored + 4 * 8192);
  bool per_pool_omap = false;
  store_statfs_t of_pool;
  ASSERT_EQ(0, m_store->pool_statfs(7, &of_pool, &per_pool_omap));
  EXPECT_EQ(of_pool.data_stored, 4 * 8192);
}

TEST_F(CubesTest, TheStatusListsTheCubes) {
  std::string printed;
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore status")", &printed));
  for (unsigned cube = 0; cube < 5; ++cube) {
    EXPECT_NE(std::string::npos, printed.find("\"cube\": " + std::to_string(cube))) << printed;
  }
}

// What is damaged in one cube is found in a check of that one, and of all, and of no other.
TEST_F(CubesTest, ACheckIsOfAllCubesOrOfOne) {
  const coll_t cid = pg(1, 8);
  create(cid, 1);
  write(cid, object(cid, "object", 1), 4096, 'x');
  m_env.advance(std::chrono::seconds(1));  // an idle cube's next record says that the write is durable
  const unsigned cube = home(cid);
  JSONFormatter formatter;
  ASSERT_EQ(0, m_store->dump_onode(handle(cid), object(cid, "object", 1), "onode", &formatter));
  std::ostringstream dump;
  formatter.flush(dump);
  std::smatch slot;
  const std::string text = dump.str();
  ASSERT_TRUE(std::regex_search(text, slot, std::regex(R"("slot_bytes":4096,"slot_index":(\d+))"))) << text;
  const uint64_t at = std::stoull(slot[1]) * 4096 + 100;
  m_pg.reset();
  m_handles.clear();
  ASSERT_EQ(0, m_store->umount());
  const std::string file = kPath + "/cubes/" + std::to_string(cube) + "/containers/4K";
  m_env.flip_bits(file, at, 1);
  for (uint32_t asked = 0; asked < 5; ++asked) {
    CheckResult result;
    ASSERT_TRUE(m_store->check({.deep = true, .cube = asked}, &result).ok());
    EXPECT_EQ(result.errors, asked == cube ? 1u : 0u) << asked;
  }
  CheckResult result;
  ASSERT_TRUE(m_store->check({.deep = true}, &result).ok());
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings.front().cube, cube);
  m_env.flip_bits(file, at, 1);
  std::vector<Repaired> changes;
  for (const vtkv::Status& status :
       {m_store->check({.cube = 5}, &result), m_store->repair({.cube = 5}, &changes, &result)}) {
    EXPECT_NE(status.to_string().find("has no cube 5: it has 5, counted from 0"), std::string::npos)
        << status.to_string();
  }
  ASSERT_EQ(0, m_store->mount());
}

// As an operator moves them, while the OSD is stopped.
class OfflineMoveTest : public CubesTest {
 protected:
  void SetUp() override {
    CubesTest::SetUp();
    for (unsigned number = 0; number < 8; ++number) {
      const coll_t cid = pg(number, 2);
      create(cid, 3);
      write(cid, object(cid, "object", number), 300'000, static_cast<char>('a' + number));
    }
  }
  void umount() {
    m_pg.reset();
    m_handles.clear();
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
  }
  void mount() {
    ASSERT_EQ(0, m_store->fsck(true));
    ASSERT_EQ(0, m_store->mount());
    for (unsigned number = 0; number < 8; ++number) {
      const coll_t cid = pg(number, 2);
      EXPECT_EQ(read(cid, object(cid, "object", number)), std::string(300'000, static_cast<char>('a' + number)));
    }
  }
  void expect_refused(const coll_t& cid, unsigned cube, const std::string& why) {
    GroupMove move;
    const vtkv::Status status = m_store->move_group(cid, cube, &move);
    EXPECT_NE(status.to_string().find(why), std::string::npos) << status.to_string();
  }
  std::vector<GroupMove> balance(bool only_plan) {
    std::vector<GroupMove> moves;
    const vtkv::Status status =
        m_store->balance_cubes(only_plan, [&moves](const GroupMove& move) { moves.push_back(move); });
    EXPECT_TRUE(status.ok()) << status.to_string();
    return moves;
  }
};

TEST_F(OfflineMoveTest, AGroupGoesWhereItIsToldTo) {
  const coll_t cid = pg(3, 2);
  const unsigned from = home(cid), to = from % 4 + 1;
  umount();
  GroupMove move;
  vtkv::Status status = m_store->move_group(cid, to, &move);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(move.from, from);
  EXPECT_GE(move.slot_bytes, 300'000u);
  mount();
  EXPECT_EQ(home(cid), to);
  umount();
  status = m_store->move_group(cid, to, &move);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(move.from, to) << "it lies there already";
  mount();
}

TEST_F(OfflineMoveTest, WhatCannotBeMovedIsRefusedByName) {
  umount();
  expect_refused(pg(3, 2), 0, "are moved to cubes 1 to 4, not to cube 0");
  expect_refused(pg(3, 2), 5, "are moved to cubes 1 to 4, not to cube 5");
  expect_refused(pg(3, 9), 1, "has no placement group 9.3_head");
  expect_refused(coll_t::meta(), 1, "meta is no placement group");
  mount();
}

TEST_F(OfflineMoveTest, GroupsOfOneCubeAreSpread) {
  umount();
  for (unsigned number = 0; number < 8; ++number) {
    GroupMove move;
    ASSERT_TRUE(m_store->move_group(pg(number, 2), 1, &move).ok());
  }
  const std::vector<GroupMove> plan = balance(true);
  EXPECT_GE(plan.size(), 5u);  // another group, without data, lies in one of the cubes
  EXPECT_EQ(balance(true).size(), plan.size()) << "a plan moves nothing";
  EXPECT_EQ(balance(false).size(), plan.size());
  EXPECT_TRUE(balance(false).empty());
  mount();
  std::map<unsigned, unsigned> groups;
  for (unsigned number = 0; number < 8; ++number) {
    ++groups[home(pg(number, 2))];
  }
  ASSERT_EQ(groups.size(), 4u);
  for (const auto& [cube, count] : groups) {
    EXPECT_LE(count, 3u) << cube;
  }
}

TEST_F(CubesTest, AWrongNumberOfCubesIsRefusedByName) {
  use_small_stores(g_ceph_context, {{"swimstore_cubes", "3"}});
  ASSERT_TRUE(m_env.create_directory("/other").ok());
  SwimStore other(g_ceph_context, "/other", &m_env);
  const vtkv::Status status = other.make();
  EXPECT_NE(status.to_string().find("swimstore_cubes is 3"), std::string::npos) << status.to_string();
  use_small_stores(g_ceph_context);  // a mount reads it, too
}

// A superblock that was damaged, or a newer program's.
TEST_F(CubesTest, AStoreWithANumberOfCubesThatNobodyMakesIsRefused) {
  m_pg.reset();
  m_handles.clear();
  ASSERT_EQ(0, m_store->umount());
  Superblock superblock;
  ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
  superblock.cubes = 4;
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(superblock).ok());
  const vtkv::Status status = m_store->try_mount();
  EXPECT_NE(status.to_string().find("has 4 cubes"), std::string::npos) << status.to_string();
  superblock.cubes = 5;
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(superblock).ok());
  ASSERT_EQ(0, m_store->mount());
}

// The same histories as of a store with one cube, one in each group, against the model.
TEST_F(CubesTest, KeepWhatTheModelSays) {
  std::vector<std::unique_ptr<StoreWorkload>> workloads;
  for (unsigned number = 0; number < 4; ++number) {
    create(pg(number, 9), 2);
    workloads.push_back(std::make_unique<StoreWorkload>(pg(number, 9), WorkloadOptions{.seed = 100 + number}));
  }
  std::mt19937_64 random(1);
  for (unsigned done = 0; done < 400; ++done) {
    const auto number = static_cast<unsigned>(random() % 4);
    queue(pg(number, 9), workloads[number]->next());
    if (random() % 4 == 0) {
      m_env.run_until_idle();
    }
    if (done % 100 == 99) {
      ASSERT_NO_FATAL_FAILURE(remount());
      for (unsigned each = 0; each < 4; ++each) {
        std::string error;
        const ModelCollection found = read_collection(*m_store, handle(pg(each, 9)), &error);
        ASSERT_EQ(error, "");
        ASSERT_EQ(difference(workloads[each]->model(), found), "");
      }
    }
  }
}

}  // namespace

}  // namespace swimstore
