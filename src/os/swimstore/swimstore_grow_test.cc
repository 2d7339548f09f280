// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores that get more cubes than they were made with, in the simulated host.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "common/code_environment.h"
#include "global/global_context.h"
#include "swimstore/cube/cube_set.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/superblock.h"
#include "swimstore/move/group_balance.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/group_info.h"
#include "swimstore/testing/growing_store.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/part_workload.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"
#include "swimstore/transaction/placement.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

namespace {

using vtkv::Status;

const std::string kPath = "/store";

coll_t pg(unsigned number, uint64_t pool) { return coll_t(spg_t(pg_t(number, pool))); }

class GrowTest : public ::testing::Test {
 protected:
  GrowTest() : m_env({.record = false}) {}
  ~GrowTest() override {
    m_store.reset();
    use_small_stores(g_ceph_context);
  }

  void make(unsigned data_cubes) {
    const std::string text = std::to_string(data_cubes);
    use_small_stores(g_ceph_context, {{"swimstore_cubes", text.c_str()}});
    ASSERT_TRUE(m_env.create_directory(kPath).ok());
    m_store = std::make_unique<SwimStore>(g_ceph_context, kPath, &m_env);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    fill_growing_store(*m_store, 1);
    m_state = read();
    unmount();
    use_small_stores(g_ceph_context);  // what the options say later counts for nothing
  }
  ModelState read() {
    std::string wrong;
    ModelState state = read_store(*m_store, &wrong);
    EXPECT_EQ("", wrong);
    return state;
  }
  void mount() { ASSERT_EQ(0, m_store->mount()); }
  void unmount() {
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
  }
  Status add(unsigned data_cubes) {
    unsigned ignored = 0;
    return m_store->add_cubes(data_cubes, &ignored);
  }
  Superblock superblock() {
    Superblock found;
    EXPECT_TRUE(Superblock::read(&m_env, kPath, &found).ok());
    return found;
  }
  void queue(const coll_t& on, ObjectStore::Transaction&& txn) {
    auto handle = m_store->open_collection(on);
    ASSERT_TRUE(handle);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  void create(const coll_t& cid, unsigned bits) {
    auto handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction txn;
    txn.create_collection(cid, static_cast<int>(bits));
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
    m_state[cid];
  }
  // Snapshots' keys by groups and by the OSD's own collection, wherever they lie.
  void change_parts(uint64_t seed) {
    std::string wrong;
    auto handles = PartWorkload::open(*m_store);
    PartWorkload::Omap omap = PartWorkload::read(*m_store, handles[0], &wrong);
    ASSERT_EQ("", wrong);
    PartWorkload workload(seed);
    for (uint64_t number = 1; number <= 60; ++number) {
      const PartStep step = workload.next();
      m_store->queue_transaction(handles[step.by], PartWorkload::transaction(step, number));
      PartWorkload::apply(step, &omap);
    }
    const PartWorkload::Omap found = PartWorkload::read(*m_store, handles[0], &wrong);
    EXPECT_EQ("", wrong);
    EXPECT_EQ(omap, found);
    m_state = read();
  }
  void change_objects(uint64_t seed) {
    const coll_t cid = pg(0, 10);
    StoreWorkload workload(cid, {.seed = seed, .objects = 4, .object_bytes_max = 60000}, m_state[cid]);
    for (unsigned i = 0; i < 10; ++i) {
      queue(cid, workload.next());
    }
    m_state[cid] = workload.model();
  }
  void expect_state() { EXPECT_EQ("", difference(m_state, read())); }

  vtkv::SimEnv m_env;
  std::unique_ptr<SwimStore> m_store;
  ModelState m_state;  // what it should hold
};

class GrowFromTo : public GrowTest, public ::testing::WithParamInterface<std::pair<unsigned, unsigned>> {};

}  // namespace

TEST_P(GrowFromTo, AllIsThereAndGroupsStayUntilTheyAreMoved) {
  const auto [from, to] = GetParam();
  ASSERT_NO_FATAL_FAILURE(make(from));
  std::map<coll_t, unsigned> homes;
  mount();
  for (const auto& [cid, objects] : m_state) {
    homes[cid] = home_of(*m_store, cid);
    EXPECT_TRUE(from > 1 || homes[cid] == 0);
  }
  unmount();
  unsigned had = 0;
  ASSERT_TRUE(m_store->add_cubes(to, &had).ok());
  EXPECT_EQ(from, had);
  EXPECT_EQ(to + 1, superblock().cubes);
  EXPECT_EQ(from == 1, superblock().features.ro_compat.contains(kGroupsInCube0Feature));
  EXPECT_TRUE(superblock().features.ro_compat.contains(kWitnessFeature));
  EXPECT_FALSE(superblock().is_upgradable());
  EXPECT_FALSE(m_env.exists(kPath + "/add_cubes_unfinished"));
  ASSERT_EQ(0, m_store->fsck(true));
  mount();
  expect_state();
  for (const auto& [cid, home] : homes) {
    EXPECT_EQ(home, home_of(*m_store, cid)) << cid;
  }
  for (unsigned number = 0; number < 8; ++number) {
    create(pg(number, 20), 3);
    EXPECT_EQ(new_home(pg(number, 20), to + 1), home_of(*m_store, pg(number, 20)));
  }
  change_parts(2);
  change_objects(3);
  unmount();
  mount();
  expect_state();
  unmount();

  std::vector<GroupMove> moves;
  ASSERT_TRUE(m_store->balance_cubes(false, [&](const GroupMove& move) { moves.push_back(move); }).ok());
  ASSERT_EQ(0, m_store->fsck(true));
  EXPECT_FALSE(moves.empty());
  mount();
  std::map<unsigned, unsigned> groups;
  for (const auto& [cid, objects] : m_state) {
    ++groups[home_of(*m_store, cid)];
  }
  EXPECT_EQ(1u, groups[0]) << "the OSD's own collection, alone";
  EXPECT_EQ(std::min<size_t>(to + 1, m_state.size()), groups.size());
  expect_state();
  change_parts(4);
  change_objects(5);
  unmount();
  mount();
  expect_state();
  unmount();
}

INSTANTIATE_TEST_SUITE_P(, GrowFromTo,
                         ::testing::Values(std::pair(1u, 2u), std::pair(1u, 4u), std::pair(1u, 64u), std::pair(2u, 4u)),
                         [](const auto& info) {
                           return fmt::format("From{}To{}", info.param.first, info.param.second);
                         });

// As the OSD splits and merges placement groups: a child lies where its parent does, and nothing goes to cube 0.
TEST_F(GrowTest, GroupsOfCube0AreSplitAndMerged) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_TRUE(add(4).ok());
  mount();
  const coll_t parent = pg(0, 10), child = pg(1, 10);
  m_store->create_new_collection(child);
  ObjectStore::Transaction split;
  split.create_collection(child, 1);
  split.split_collection(parent, 1, 1, child);
  queue(parent, std::move(split));
  EXPECT_EQ(0u, home_of(*m_store, child));
  m_state = read();
  unmount();
  GroupMove move;
  ASSERT_TRUE(m_store->move_group(child, 3, &move).ok());
  EXPECT_EQ(0u, move.from);
  EXPECT_EQ(Status::Code::invalid_argument, m_store->move_group(child, 0, &move).code());
  mount();
  expect_state();
  // The one that it is queued on lies in cube 0: it goes to the other, not the other way round.
  ObjectStore::Transaction merge;
  merge.merge_collection(child, parent, 0);
  queue(parent, std::move(merge));
  EXPECT_EQ(3u, home_of(*m_store, parent));
  m_state[parent].merge(m_state[child]);
  m_state.erase(child);
  expect_state();
  unmount();
  mount();
  expect_state();
  unmount();
}

TEST_F(GrowTest, MoreThanOnce) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (const unsigned to : {2, 4, 4, 16}) {
    ASSERT_TRUE(add(to).ok()) << to;
    EXPECT_EQ(to + 1, superblock().cubes);
    mount();
    expect_state();
    change_parts(to);
    unmount();
    GroupMove move;
    ASSERT_TRUE(m_store->move_group(pg(0, 10), to, &move).ok());
  }
}

// Of a store with several sizes are what it was made with, divided; those that are there keep theirs.
TEST_F(GrowTest, NewCubesHaveTheSizesOfAStoreThatIsMadeWithSoMany) {
  constexpr uint64_t kMiB = 1u << 20;
  use_small_stores(g_ceph_context, {{"swimstore_log_segment_size", "33554432"}, {"swimstore_chunk_size", "33554432"}});
  ASSERT_TRUE(m_env.create_directory(kPath).ok());
  m_store = std::make_unique<SwimStore>(g_ceph_context, kPath, &m_env);
  ASSERT_EQ(0, m_store->mkfs());
  EXPECT_EQ(32 * kMiB, superblock().geometry.log_segment_bytes);
  for (const auto& [to, bytes] : {std::pair(2u, 16 * kMiB), std::pair(4u, 8 * kMiB), std::pair(64u, 4 * kMiB)}) {
    ASSERT_TRUE(add(to).ok());
    EXPECT_EQ(bytes, superblock().geometry.log_segment_bytes);
    EXPECT_EQ(bytes, superblock().chunk_bytes);
    std::unique_ptr<vtkv::File> segment;
    uint64_t found = 0;
    const std::string path = fmt::format("{}/cubes/{}/log/000001.log", kPath, to);
    ASSERT_TRUE(m_env.open_file(path, {.read_only = true}, &segment).ok() && segment->size(&found).ok());
    EXPECT_EQ(bytes, found);
  }
  ASSERT_EQ(0, m_store->fsck(true));
}

// A crash came behind the superblock: what is left to be done a mount does. A repair may come before it.
TEST_F(GrowTest, AStoreThatIsNotDividedYetIsCheckedRepairedAndMounted) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  Settings settings;
  ASSERT_TRUE(Settings::read(g_ceph_context, &settings).ok());
  Superblock grown = superblock();
  grown.cubes = 3;
  grown.features.add(features_of(grown.cubes));
  for (unsigned cube = 1; cube < grown.cubes; ++cube) {
    ASSERT_TRUE(CubeSet::create_one(&m_env, kPath + "/cubes", settings.cube_options(true), grown.cubes, cube).ok());
  }
  ASSERT_TRUE(grown.write(&m_env, kPath).ok());
  ASSERT_EQ(0, m_store->fsck(true));
  ASSERT_EQ(0, m_store->repair(true));
  mount();
  expect_state();
  change_parts(2);
  unmount();
  mount();
  expect_state();
  unmount();
}

namespace {

void remove_cube(vtkv::SimEnv& env, unsigned cube) {
  const std::string below = fmt::format("{}/cubes/{}/", kPath, cube);
  for (const std::string& file : env.files()) {
    if (file.starts_with(below)) {
      ASSERT_TRUE(env.remove_file(file).ok());
    }
  }
}

}  // namespace

// While it lay in cube 0 the group started anew; then it went to a cube that is lost.
TEST_F(GrowTest, AGroupOfCube0IsWitnessed) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_TRUE(add(2).ok());
  mount();
  const coll_t group = PartWorkload::collection(1);
  unsigned number = 0;
  while (new_home(pg(number, 20), 3) != 2) {
    ++number;
  }
  create(pg(number, 20), 1);
  constexpr epoch_t kLater = kGrowingStoreEpoch + 5;
  ObjectStore::Transaction starts;
  put_info(group, kLater, &starts);
  queue(group, std::move(starts));
  ObjectStore::Transaction both;  // brings the two together
  both.touch(group, PartWorkload::counter(1));
  both.touch(pg(number, 20), ghobject_t(hobject_t(object_t("other"), "", CEPH_NOSNAP, number, 20, "")));
  queue(pg(number, 20), std::move(both));
  EXPECT_EQ(2u, home_of(*m_store, group));
  m_env.run_until_idle();
  ASSERT_EQ(0, m_store->umount());
  remove_cube(m_env, 2);
  use_small_stores(g_ceph_context, {{"swimstore_mount_damaged_cubes", "incomplete"}});
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  const Status mounted = m_store->try_mount();
  g_code_env = CODE_ENVIRONMENT_UTILITY;
  ASSERT_TRUE(mounted.ok()) << mounted.to_string();
  EXPECT_EQ(1u, home_of(*m_store, group));
  const std::optional<pg_info_t> info = read_info(*m_store, group);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->is_incomplete());
  EXPECT_EQ(kLater, info->history.last_epoch_started);
  EXPECT_EQ(0u, home_of(*m_store, PartWorkload::collection(2))) << "which lay in no cube that is lost";
  ASSERT_EQ(0, m_store->umount());
  const Status refused = add(4);
  EXPECT_EQ(Status::Code::failed, refused.code());
  EXPECT_NE(std::string::npos, refused.message().find("cube 2 of /store is abandoned")) << refused.to_string();
  EXPECT_EQ(3u, superblock().cubes);
}

TEST_F(GrowTest, WhatCannotBeDoneIsSaidAndChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(make(2));
  const std::string before = superblock().encode();
  for (const unsigned wrong : {0u, 3u, 5u, 65u, 96u, 128u, 0x80000000u, 0xffffffffu}) {
    const Status status = add(wrong);
    EXPECT_EQ(Status::Code::invalid_argument, status.code()) << wrong;
    EXPECT_NE(std::string::npos, status.message().find("up to 64 cubes")) << status.to_string();
  }
  const Status fewer = add(1);
  EXPECT_EQ(Status::Code::invalid_argument, fewer.code());
  EXPECT_NE(std::string::npos, fewer.message().find("over 2 cubes already")) << fewer.to_string();
  mount();
  SwimStore other(g_ceph_context, kPath, &m_env);
  unsigned had = 0;
  EXPECT_EQ(Status::Code::busy, other.add_cubes(4, &had).code());
  unmount();
  // Somebody's directory where a cube would lie.
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env.create_directory(kPath + "/cubes/4").ok());
  ASSERT_TRUE(m_env.open_file(kPath + "/cubes/4/precious", {.create = true}, &file).ok());
  const Status foreign = add(4);
  EXPECT_EQ(Status::Code::failed, foreign.code());
  EXPECT_NE(std::string::npos, foreign.message().find("/store/cubes/4/precious is there")) << foreign.to_string();
  EXPECT_TRUE(m_env.exists(kPath + "/cubes/4/precious"));
  EXPECT_FALSE(m_env.exists(kPath + "/cubes/3"));
  EXPECT_FALSE(m_env.exists(kPath + "/add_cubes_unfinished"));
  EXPECT_EQ(before, superblock().encode());
  mount();
  expect_state();
  unmount();
}

TEST_F(GrowTest, WithoutRoomForTheFilesNothingChanges) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  m_env.run_until_idle();
  const std::string before = superblock().encode();
  const uint64_t used = m_env.allocated_bytes();
  m_env.set_capacity(used + (4u << 20));
  const Status status = add(64);
  EXPECT_TRUE(status.is_no_space()) << status.to_string();
  EXPECT_NE(std::string::npos, status.message().find("has room for")) << status.to_string();
  EXPECT_EQ(before, superblock().encode());
  EXPECT_FALSE(m_env.exists(kPath + "/add_cubes_unfinished"));
  mount();
  expect_state();
  unmount();
  m_env.set_capacity(UINT64_MAX);
  ASSERT_TRUE(add(64).ok());
  mount();
  expect_state();
  unmount();
}

// The host gets full while they are made.
TEST_F(GrowTest, WhatWasMadeIsRemovedWhereOneCannotBeMade) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const std::string before = superblock().encode();
  const std::vector<std::string> files = m_env.files();
  m_env.fail_nth(vtkv::SimCall::allocate, 20, Status::from_errno(ENOSPC, "a test says so"), true);
  const Status status = add(16);
  m_env.clear_faults();
  EXPECT_TRUE(status.is_no_space()) << status.to_string();
  EXPECT_NE(std::string::npos, status.message().find("/store is as it was")) << status.to_string();
  EXPECT_EQ(before, superblock().encode());
  for (const std::string& file : m_env.files()) {
    EXPECT_FALSE(file.starts_with(kPath + "/cubes/") && !file.starts_with(kPath + "/cubes/0/")) << file;
  }
  EXPECT_FALSE(m_env.exists(kPath + "/add_cubes_unfinished"));
  ASSERT_TRUE(add(16).ok()) << "the directories that are left are its own";
  mount();
  expect_state();
  unmount();
}

TEST_F(GrowTest, WhatRepairQuarantinedComesFirst) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  {
    Settings settings;
    ASSERT_TRUE(Settings::read(g_ceph_context, &settings).ok());
    std::unique_ptr<CubeSet> cubes;
    ASSERT_TRUE(CubeSet::open(&m_env, kPath + "/cubes", settings.cube_options(true), {}, &cubes).ok());
    vtkv::WriteBatch batch;
    batch.put(std::string(1, key_prefix::quarantined) + "entry", "value");
    ASSERT_TRUE((*cubes)[0].database().write(std::move(batch)).ok());
  }
  const Status status = add(2);
  EXPECT_EQ(Status::Code::failed, status.code());
  EXPECT_NE(std::string::npos, status.message().find("forget-quarantined-entries")) << status.to_string();
  EXPECT_EQ(1u, superblock().cubes);
  uint64_t entries = 0;
  ASSERT_TRUE(m_store->forget_quarantined(&entries).ok());
  ASSERT_TRUE(add(2).ok());
}

TEST_F(GrowTest, WhatCannotBeDecodedIsFoundBeforeAnythingChanges) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const std::string before = superblock().encode();
  m_env.set_bad(vtkv::SimBad::reads, kPath + "/cubes/0/tree", 0, UINT64_MAX);
  const Status status = add(2);
  m_env.clear_faults();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(before, superblock().encode());
  EXPECT_FALSE(m_env.exists(kPath + "/cubes/1"));
  mount();
  expect_state();
  unmount();
}

}  // namespace swimstore
