// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores that get more cubes than they were made with, in the simulated host.

#include "swimstore/testing/database_features.h"
#include "swimstore/testing/grow_fixture.h"

namespace swimstore {

namespace {

using vtkv::Status;

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
  EXPECT_FALSE(m_env.exists(kGrowPath + "/add_cubes_unfinished"));
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

// Older programs go on with such a store until then.
TEST_P(GrowFromTo, DatabasesOfNewCubesWaitForTheUpgradeToo) {
  const auto [from, to] = GetParam();
  ASSERT_NO_FATAL_FAILURE(make(from, "false"));
  ASSERT_TRUE(add(to).ok());
  const auto features = [this](unsigned cube) {
    return database_features(&m_env, CubeSet::cube_path(kGrowPath + "/cubes", cube));
  };
  for (unsigned cube = 0; cube <= to; ++cube) {
    EXPECT_TRUE(features(cube).empty()) << cube;
  }
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(m_store->upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(changed);
  for (unsigned cube = 0; cube <= to; ++cube) {
    EXPECT_TRUE(features(cube).incompat.contains(vtkv::kCompressedBlocksFeature)) << cube;
  }
  mount();
  expect_state();
  unmount();
}

// The tool reads no ceph.conf.
TEST_P(GrowFromTo, DatabasesOfNewCubesAreCompressedAsTheOthersWhateverTheOptionSays) {
  const auto [from, to] = GetParam();
  ASSERT_NO_FATAL_FAILURE(make(from));
  use_small_stores(g_ceph_context, {{"swimstore_compress_metadata", "false"}});
  ASSERT_TRUE(add(to).ok());
  for (unsigned cube = 0; cube <= to; ++cube) {
    const vtkv::Features features = database_features(&m_env, CubeSet::cube_path(kGrowPath + "/cubes", cube));
    EXPECT_TRUE(features.incompat.contains(vtkv::kCompressedBlocksFeature)) << cube;
  }
  mount();
  expect_state();
  unmount();
}

// The first that fails is named; asked again, it ends. The superblock comes last.
TEST_F(GrowTest, AnUpgradeThatFailsBetweenTwoCubesEndsWhenItIsAskedForAgain) {
  ASSERT_NO_FATAL_FAILURE(make(2, "false"));
  Superblock older = superblock();
  older.version = 2;
  ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_superblock(older).ok());
  const auto is_upgraded = [this](unsigned cube) {
    return !database_features(&m_env, CubeSet::cube_path(kGrowPath + "/cubes", cube)).empty();
  };
  Superblock before, after;
  bool changed = false;
  m_env.set_bad(vtkv::SimBad::writes, kGrowPath + "/cubes/1/manifest", 0, UINT64_MAX);
  const Status failed = m_store->upgrade(&before, &after, &changed);
  EXPECT_NE(std::string::npos, failed.message().find("cubes before 1 are upgraded")) << failed.to_string();
  m_env.clear_faults();
  EXPECT_TRUE(is_upgraded(0));
  EXPECT_FALSE(is_upgraded(1));
  EXPECT_FALSE(is_upgraded(2));
  EXPECT_EQ(2u, superblock().version);
  mount();
  expect_state();
  unmount();
  ASSERT_TRUE(m_store->upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(changed);
  EXPECT_TRUE(is_upgraded(1) && is_upgraded(2));
  EXPECT_EQ(kSuperblockVersion, superblock().version);
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
  ASSERT_TRUE(m_env.create_directory(kGrowPath).ok());
  m_store = std::make_unique<SwimStore>(g_ceph_context, kGrowPath, &m_env);
  ASSERT_EQ(0, m_store->mkfs());
  EXPECT_EQ(32 * kMiB, superblock().geometry.log_segment_bytes);
  for (const auto& [to, bytes] : {std::pair(2u, 16 * kMiB), std::pair(4u, 8 * kMiB), std::pair(64u, 4 * kMiB)}) {
    ASSERT_TRUE(add(to).ok());
    EXPECT_EQ(bytes, superblock().geometry.log_segment_bytes);
    EXPECT_EQ(bytes, superblock().chunk_bytes);
    std::unique_ptr<vtkv::File> segment;
    uint64_t found = 0;
    const std::string path = fmt::format("{}/cubes/{}/log/000001.log", kGrowPath, to);
    ASSERT_TRUE(m_env.open_file(path, {.read_only = true}, &segment).ok() && segment->size(&found).ok());
    EXPECT_EQ(bytes, found);
  }
  ASSERT_EQ(0, m_store->fsck(true));
}

// A crash came behind the superblock: what is left to be done a mount does. A repair may come before it.
TEST_F(GrowTest, AStoreThatIsNotDividedYetIsCheckedRepairedAndMounted) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  Superblock grown = superblock();
  grown.cubes = 3;
  grown.features.add(features_of(grown.cubes));
  grown.features.ro_compat.insert(kGroupsInCube0Feature);
  // It was copying when it was cut short.
  unsigned copied = 0;
  change_cube_0([&copied](vtkv::DB& database, vtkv::WriteBatch* batch) {
    OnodeRecord record;
    ExtentShard shard;
    std::string bytes, row;
    ASSERT_TRUE(database.get(object_key(growing_store_object()), &bytes).ok() && decode_onode(bytes, &record, &shard));
    const auto values = database.new_iterator(omap_key(record.nid, ""), omap_range_end(record.nid));
    for (values->seek_to_first(); values->valid() && copied < 10; values->next(), ++copied) {
      row.clear();
      encode_omap_row({OmapRow::Kind::value, record.nid, values->value()}, &row);
      batch->put(omap_row_key(record.nid, values->key().substr(kOmapPrefixBytes)), row);
    }
  });
  EXPECT_EQ(10u, copied);
  interrupt(1, 2, grown.cubes);
  ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_superblock(grown).ok());
  ASSERT_EQ(0, m_store->fsck(true));
  ASSERT_EQ(0, m_store->repair(true));
  EXPECT_TRUE(is_marked());
  mount();
  EXPECT_FALSE(is_marked());
  expect_state();
  change_parts(2);
  unmount();
  mount();
  expect_state();
  unmount();
}

// Only until it is divided has an object rows that its record does not tell of.
TEST_F(GrowTest, RowsThatARecordDoesNotTellOfAreFoundOnceItIsDivided) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_TRUE(add(2).ok());
  ASSERT_EQ(0, m_store->fsck(true));
  change_cube_0([](vtkv::DB& database, vtkv::WriteBatch* batch) {
    OnodeRecord record;
    ExtentShard shard;
    std::string bytes;
    const std::string key = object_key(growing_store_object());
    ASSERT_TRUE(database.get(key, &bytes).ok() && decode_onode(bytes, &record, &shard));
    record.set(OnodeRecord::omap_in_parts, false);
    bytes.clear();
    encode_onode(record, shard, &bytes);
    batch->put(key, bytes);
  });
  CheckResult result;
  ASSERT_TRUE(m_store->check({}, &result).ok());
  EXPECT_TRUE(std::any_of(result.findings.begin(), result.findings.end(),
                          [](const Finding& finding) { return finding.kind == FindingClass::omap_orphaned; }));
}

TEST_F(GrowTest, ARecordWithoutAGenerationIsDamageWhereTheStoreWasMadeWithSeveral) {
  ASSERT_NO_FATAL_FAILURE(make(2));
  change_cube_0([](vtkv::DB& database, vtkv::WriteBatch* batch) {
    CollectionRecord record;
    std::string bytes;
    ASSERT_TRUE(database.get(collection_key(coll_t::meta()), &bytes).ok() && decode_collection(bytes, &record));
    EXPECT_GT(record.generation, 0u);
    record.generation = 0;
    batch->put(collection_key(coll_t::meta()), encode_collection(record));
  });
  EXPECT_TRUE(m_store->try_mount().is_corruption());
}

namespace {

void remove_cube(vtkv::SimEnv& env, unsigned cube) {
  const std::string below = fmt::format("{}/cubes/{}/", kGrowPath, cube);
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

}  // namespace swimstore
