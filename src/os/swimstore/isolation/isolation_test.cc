// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores that lose a cube, in the simulated host.

#include <gtest/gtest.h>

#include <sstream>

#include "common/admin_socket.h"
#include "common/ceph_context.h"
#include "common/code_environment.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/superblock.h"
#include "swimstore/format/witness.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/omap/witness_writer.h"
#include "swimstore/ops/settings.h"
#include "swimstore/testing/group_info.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/transaction/placement.h"

namespace swimstore {
namespace {

constexpr unsigned kGroups = 8;
constexpr unsigned kLost = 2;  // the cube
constexpr epoch_t kEpoch = 7;

coll_t group(unsigned number) { return coll_t(spg_t(pg_t(number, 2))); }

ghobject_t object_of(unsigned number) {
  return ghobject_t(hobject_t(object_t("object"), "", CEPH_NOSNAP, number, 2, ""));
}

class IsolationTest : public SimStoreFixture {
 protected:
  IsolationTest() : SimStoreFixture({{"swimstore_cubes", "4"}}) {}

  void SetUp() override {
    SimStoreFixture::SetUp();
    for (unsigned number = 0; number < kGroups; ++number) {
      make_group(number);
    }
    m_env.run_until_idle();
    unmount();
  }
  void TearDown() override {
    if (m_mounted) {
      unmount();
    }
    m_store.reset();
    use_small_stores(g_ceph_context);
  }

  void make_group(unsigned number) {
    const coll_t cid = group(number);
    auto handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction txn;
    txn.create_collection(cid, 3);
    put_info(cid, kEpoch, &txn);
    ceph::bufferlist data;
    data.append(std::string(10000, static_cast<char>('a' + number)));
    txn.write(cid, object_of(number), 0, data.length(), data);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  vtkv::Status mount(const char* damaged_cubes = "refuse") {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "4"}, {"swimstore_mount_damaged_cubes", damaged_cubes}});
    g_code_env = m_environment;
    const vtkv::Status status = m_store->try_mount();
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    m_mounted = status.ok();
    return status;
  }
  void unmount() {
    m_pg.reset();
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
    m_mounted = false;
  }
  // All of its files.
  void remove_cube(unsigned cube = kLost) {
    const std::string below = kPath + "/cubes/" + std::to_string(cube) + "/";
    for (const std::string& file : m_env.files()) {
      if (file.starts_with(below)) {
        ASSERT_TRUE(m_env.remove_file(file).ok()) << file;
      }
    }
  }
  std::unique_ptr<CubeSet> open_cubes() {
    Settings settings;
    EXPECT_TRUE(Settings::read(g_ceph_context, &settings).ok());
    Superblock superblock;
    EXPECT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
    settings.geometry = superblock.geometry;
    settings.chunk_bytes = superblock.chunk_bytes;
    std::unique_ptr<CubeSet> cubes;
    EXPECT_TRUE(CubeSet::open(&m_env, kPath + "/cubes", settings.cube_options(true),
                              {.cubes = superblock.cubes, .goes_on = true}, &cubes)
                    .ok());
    return cubes;
  }
  // Of a store that is not mounted: the tree of one cube.
  template <typename Fill>
  void change(unsigned cube, const Fill& fill) {
    const std::unique_ptr<CubeSet> cubes = open_cubes();
    vtkv::WriteBatch batch;
    fill(&batch);
    ASSERT_TRUE((*cubes)[cube].database().write(std::move(batch)).ok());
  }
  // As version 0.4 made it.
  void make_older() {
    Superblock superblock;
    ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
    superblock.features.ro_compat.clear();
    ASSERT_TRUE(superblock.write(&m_env, kPath).ok());
    change(0, [](vtkv::WriteBatch* batch) {
      batch->remove_range(std::string(1, key_prefix::witness), std::string(1, key_prefix::witness + 1));
    });
  }
  void spoil_pgmeta() {
    change(kLost, [](vtkv::WriteBatch* batch) { batch->put(object_key(pgmeta_of(in_lost_cube())), "no onode"); });
  }
  static ghobject_t pgmeta_of(unsigned number) {
    spg_t pgid;
    group(number).is_pg(&pgid);
    return pgid.make_pgmeta_oid();
  }
  static unsigned in_lost_cube() {
    unsigned number = 0;
    while (!lay_in(number, kLost)) {
      ++number;
    }
    return number;
  }
  uint64_t groups_committed_by_cube_0() {
    m_env.run_until_idle();
    ceph::bufferlist in, out;
    std::ostringstream errors;
    EXPECT_EQ(0, g_ceph_context->get_admin_socket()->execute_command({R"({"prefix": "swimstore status"})"}, in, errors,
                                                                     &out));
    const std::string text = out.to_str(), key = "\"commit_groups\": ";
    const size_t at = text.find(key, text.find("\"cubes\": ["));
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + key.size()));
  }
  std::string read(unsigned number) {
    auto handle = m_store->open_collection(group(number));
    ceph::bufferlist data;
    const int r = handle ? m_store->read(handle, object_of(number), 0, 0, data) : -ENXIO;
    return r < 0 ? "error " + std::to_string(r) : data.to_str();
  }
  unsigned home(unsigned number) { return home_of(*m_store, group(number)); }
  static bool lay_in(unsigned number, unsigned cube) { return new_home(group(number), 5) == cube; }
  std::string alert() {
    store_statfs_t space;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&space, &alerts));
    const auto found = alerts.find("SWIMSTORE_CUBE_FAILED");
    return found == alerts.end() ? "" : found->second;
  }
  std::optional<CubeMark> mark(unsigned cube = kLost) {
    std::optional<CubeMark> found;
    EXPECT_TRUE(StoreDirectory(&m_env, kPath).read_cube_mark(cube, &found).ok());
    return found;
  }
  // Those of the lost cube are there, empty, elsewhere, and remember the epoch; the others have what they had.
  void expect_the_others_served() {
    unsigned lost = 0;
    for (unsigned number = 0; number < kGroups; ++number) {
      if (!lay_in(number, kLost)) {
        EXPECT_EQ(read(number), std::string(10000, static_cast<char>('a' + number))) << number;
        EXPECT_EQ(home(number), new_home(group(number), 5));
        continue;
      }
      ++lost;
      EXPECT_EQ(read(number), "error -2") << number;
      EXPECT_NE(home(number), kLost);
      EXPECT_NE(home(number), 0u);
      const std::optional<pg_info_t> info = read_info(*m_store, group(number));
      ASSERT_TRUE(info) << number;
      EXPECT_EQ(info->history.last_epoch_started, kEpoch);
      EXPECT_EQ(info->history.last_interval_started, kEpoch);
      EXPECT_EQ(info->history.epoch_created, 1u);
      EXPECT_EQ(info->last_epoch_started, 0u);
      EXPECT_EQ(info->last_update, eversion_t());
      EXPECT_EQ(info->log_tail, eversion_t());
      EXPECT_TRUE(info->is_incomplete());
      EXPECT_EQ(info->last_backfill, hobject_t());
      EXPECT_FALSE(info->dne());
    }
    EXPECT_EQ(lost, 2u);
  }

  bool m_mounted = true;
  code_environment_t m_environment = CODE_ENVIRONMENT_DAEMON;
};

TEST_F(IsolationTest, AStoreWithADamagedCubeIsRefusedWithItsNameAndTheRemedy) {
  remove_cube();
  const vtkv::Status status = mount();
  ASSERT_FALSE(status.ok());
  const std::string text(status.message());
  for (const char* part :
       {"cube 2 is damaged", "/store/cubes/2", "2 placement groups", "swimstore_mount_damaged_cubes=incomplete"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_FALSE(mark()) << "nothing was decided";
}

TEST_F(IsolationTest, TheOthersAreServedAndTheGroupsOfTheLostOneAreMadeAnew) {
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
  EXPECT_NE(alert().find("cube 2 ("), std::string::npos) << alert();
  ASSERT_TRUE(mark());
  EXPECT_EQ(mark()->state, CubeMark::State::abandoned);
  unmount();
  EXPECT_EQ(0, m_store->fsck(true)) << "nothing of the store lies there any more";
  ASSERT_TRUE(mount().ok()) << "it was decided once";
  expect_the_others_served();
}

TEST_F(IsolationTest, ALostGroupCanBeFilledAgainAndLostAgain) {
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  unsigned number = 0;
  while (!lay_in(number, kLost)) {
    ++number;
  }
  const unsigned second = home(number);
  {
    auto handle = m_store->open_collection(group(number));
    ObjectStore::Transaction txn;
    put_info(group(number), kEpoch + 5, &txn);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  unmount();
  remove_cube(second);
  ASSERT_TRUE(mount("incomplete").ok());
  EXPECT_NE(home(number), kLost);
  EXPECT_NE(home(number), second);
  EXPECT_EQ(read_info(*m_store, group(number))->history.last_epoch_started, kEpoch + 5);
}

TEST_F(IsolationTest, ATreeThatCannotBeReadIsMetInACheckBecauseTheCubeIsMarked) {
  ASSERT_TRUE(mount("incomplete").ok());
  ASSERT_EQ(0, m_store->compact());
  unmount();
  std::string said;
  m_store->set_metadata_failure_handler([&said](const std::string& message) { said = message; });
  ASSERT_TRUE(mount("incomplete").ok());
  m_store->flush_cache();
  m_env.set_bad(vtkv::SimBad::reads, kPath + "/cubes/2/tree", 0, UINT64_MAX);
  for (unsigned number = 0; number < kGroups; ++number) {
    if (lay_in(number, kLost)) {
      EXPECT_EQ(read(number), "error -5");
    }
  }
  EXPECT_NE(said.find("swimstore_mount_damaged_cubes=incomplete"), std::string::npos) << said;
  ASSERT_TRUE(mark());
  EXPECT_EQ(mark()->state, CubeMark::State::suspect);
  EXPECT_NE(mark()->reason.find("/store/cubes/2/tree"), std::string::npos) << mark()->reason;
  unmount();
  const vtkv::Status refused = mount();
  EXPECT_NE(refused.message().find("cube 2 is damaged"), std::string::npos) << refused.to_string();
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST_F(IsolationTest, ASuspectCubeThatIsWholeIsUsedAgain) {
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).mark_cube(kLost, {CubeMark::State::suspect, "a test says so"}).ok());
  ASSERT_TRUE(mount().ok());
  EXPECT_FALSE(mark());
  EXPECT_EQ(alert(), "");
  for (unsigned number = 0; number < kGroups; ++number) {
    EXPECT_EQ(read(number), std::string(10000, static_cast<char>('a' + number)));
  }
}

// It would be marked, and then could not be made anew.
TEST_F(IsolationTest, ACubeIsNotAbandonedWhenAWitnessIsDamaged) {
  change(0, [](vtkv::WriteBatch* batch) { batch->put(witness_key(group(in_lost_cube()), "_info"), "no info"); });
  spoil_pgmeta();
  EXPECT_FALSE(mount("incomplete").ok());
  EXPECT_FALSE(mark());
}

// A crash came before the source's witness was removed.
TEST_F(IsolationTest, AGroupThatWasMergedIntoAnotherIsNotMadeAnew) {
  const unsigned target = in_lost_cube();
  const unsigned source = target + 4;
  ASSERT_TRUE(lay_in(source, kLost));
  change(0, [&](vtkv::WriteBatch* batch) {
    batch->put(witness_key(group(target), ""), encode_witnessed_group({.bits = 2, .home = kLost}));
  });
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  EXPECT_TRUE(m_store->collection_exists(group(target)));
  EXPECT_FALSE(m_store->collection_exists(group(source)));
}

// As where repair has quarantined its own object. An OSD that found none would say that it never had the group, and an
// older copy could become the newest.
TEST_F(IsolationTest, AGroupThatHasLostItsInfoIsToBeFilledAnew) {
  const unsigned number = in_lost_cube();
  const ghobject_t pgmeta = pgmeta_of(number);
  const std::string entry = "0000000007.00000000000000000001";  // of its log, which must not know more than its info
  ASSERT_TRUE(mount().ok());
  auto handle = m_store->open_collection(group(number));
  ObjectStore::Transaction txn;
  txn.omap_setkeys(group(number), pgmeta, std::map<std::string, ceph::bufferlist>{{entry, {}}});
  txn.omap_rmkeys(group(number), pgmeta, {std::string(kInfoKey)});
  ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  for (const char* const lost : {"the info", "the object", "the cube"}) {
    handle.reset();
    unmount();
    if (lost == std::string("the object")) {
      change(kLost, [&](vtkv::WriteBatch* batch) { batch->remove(object_key(pgmeta)); });
    } else if (lost == std::string("the cube")) {
      remove_cube();
    }
    ASSERT_TRUE(mount(lost == std::string("the cube") ? "incomplete" : "refuse").ok()) << lost;
    const std::optional<pg_info_t> info = read_info(*m_store, group(number));
    ASSERT_TRUE(info) << lost;
    EXPECT_TRUE(info->is_incomplete()) << lost;
    EXPECT_EQ(info->history.last_epoch_started, kEpoch) << lost;
    handle = m_store->open_collection(group(number));
    std::map<std::string, ceph::bufferlist> found;
    ASSERT_EQ(0, m_store->omap_get_values(handle, pgmeta, {entry}, &found));
    EXPECT_TRUE(found.empty()) << lost;
    const bool has_objects = read(number) == std::string(10000, static_cast<char>('a' + number));
    EXPECT_EQ(has_objects, lost != std::string("the cube")) << "a backfill compares them";
  }
}

// What a mount reads of each cube.
TEST_F(IsolationTest, AnUnownedRangeThatCannotBeDecodedIsDamageOfItsCube) {
  change(kLost, [](vtkv::WriteBatch* batch) { batch->put(unowned_range_key(group(0)), "no range"); });
  const vtkv::Status refused = mount();
  EXPECT_NE(refused.message().find("cube 2 is damaged"), std::string::npos) << refused.message();
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

// Its files come back, as from a disk that was away: what it has is old by now.
TEST_F(IsolationTest, AnAbandonedCubeIsNeverOpenedAgain) {
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).mark_cube(kLost, {CubeMark::State::abandoned, "a test says so"}).ok());
  ASSERT_TRUE(mount().ok());
  expect_the_others_served();
  EXPECT_NE(alert().find("a test says so"), std::string::npos) << alert();
}

TEST_F(IsolationTest, AnAbandonedCubeIsMadeAnew) {
  remove_cube();
  EXPECT_EQ(m_store->reset_cube(kLost, true).code(), vtkv::Status::Code::failed) << "nobody has given it up";
  EXPECT_EQ(m_store->reset_cube(0, true).code(), vtkv::Status::Code::failed);
  EXPECT_EQ(m_store->reset_cube(9, true).code(), vtkv::Status::Code::invalid_argument);
  ASSERT_TRUE(mount("incomplete").ok());
  unmount();
  const vtkv::Status refused = m_store->reset_cube(kLost, false);
  EXPECT_NE(refused.message().find("2 placement groups"), std::string::npos) << "it may have the only copy";
  ASSERT_TRUE(mark());
  ASSERT_TRUE(m_store->reset_cube(kLost, true).ok());
  EXPECT_FALSE(mark());
  ASSERT_TRUE(mount().ok());
  EXPECT_EQ(alert(), "");
  expect_the_others_served();
  unsigned number = kGroups;
  while (!lay_in(number, kLost)) {
    ++number;
  }
  make_group(number);
  EXPECT_EQ(home(number), kLost);
  unmount();
  EXPECT_EQ(0, m_store->fsck(true));
  ASSERT_TRUE(mount().ok());
  EXPECT_EQ(read(number), std::string(10000, static_cast<char>('a' + number)));
}

// A crash came between the decision and what follows from it.
TEST_F(IsolationTest, AResetMakesTheGroupsAnewFirst) {
  remove_cube();
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).mark_cube(kLost, {CubeMark::State::abandoned, "a test says so"}).ok());
  ASSERT_TRUE(m_store->reset_cube(kLost, true).ok());
  ASSERT_TRUE(mount().ok());
  expect_the_others_served();
}

TEST_F(IsolationTest, AStoreThatLostAllItsDataCubesIsRefused) {
  for (unsigned cube = 1; cube <= 4; ++cube) {
    remove_cube(cube);
  }
  const vtkv::Status status = mount("incomplete");
  EXPECT_NE(status.message().find("No cube that holds placement groups is left"), std::string::npos)
      << status.to_string();
  EXPECT_FALSE(mark(1));
}

TEST_F(IsolationTest, WithoutItsOwnCollectionThereIsNoStore) {
  remove_cube(0);
  EXPECT_FALSE(mount("incomplete").ok());
  EXPECT_FALSE(mark(0));
}

TEST_F(IsolationTest, WhatANewerProgramWroteIsNotAbandoned) {
  const std::string superblock = kPath + "/superblock";
  Superblock newer;
  ASSERT_TRUE(Superblock::read(&m_env, kPath, &newer).ok());
  newer.features.incompat.insert("from_the_future");
  ASSERT_TRUE(newer.write(&m_env, kPath).ok());
  EXPECT_EQ(mount("incomplete").code(), vtkv::Status::Code::unsupported);
}

TEST_F(IsolationTest, ARemovedGroupIsNotMadeAnew) {
  ASSERT_TRUE(mount().ok());
  unsigned number = 0;
  while (!lay_in(number, kLost)) {
    ++number;
  }
  {
    auto handle = m_store->open_collection(group(number));
    ObjectStore::Transaction txn;
    txn.remove(group(number), object_of(number));
    spg_t pgid;
    group(number).is_pg(&pgid);
    txn.remove(group(number), pgid.make_pgmeta_oid());
    txn.remove_collection(group(number));
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  unmount();
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  EXPECT_FALSE(m_store->collection_exists(group(number)));
}

TEST_F(IsolationTest, AnOlderStoreGetsWitnessesWithAnUpgradeAndAMount) {
  make_older();
  ASSERT_TRUE(mount().ok());
  unmount();
  Superblock before, after;
  ASSERT_TRUE(m_store->upgrade(&before, &after).ok());
  EXPECT_TRUE(before.is_upgradable());
  EXPECT_FALSE(after.is_upgradable());
  ASSERT_TRUE(mount().ok());
  unmount();
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST_F(IsolationTest, AnOlderStoreDoesNotGoOnWithoutACube) {
  make_older();
  remove_cube();
  EXPECT_FALSE(mount("incomplete").ok());
  EXPECT_FALSE(mark());
  Superblock before, after;
  EXPECT_EQ(m_store->upgrade(&before, &after).code(), vtkv::Status::Code::failed) << "it is too late for that";
}

// The feature alone says nothing: what it promises is written by the next mount.
TEST_F(IsolationTest, ACubeThatIsLostBetweenTheUpgradeAndAMountIsNotAbandoned) {
  make_older();
  Superblock before, after;
  ASSERT_TRUE(m_store->upgrade(&before, &after).ok());
  remove_cube();
  const vtkv::Status status = mount("incomplete");
  EXPECT_NE(status.message().find("since its upgrade"), std::string::npos) << status.to_string();
  EXPECT_FALSE(mark());
}

TEST_F(IsolationTest, AToolAbandonsNothing) {
  remove_cube();
  m_environment = CODE_ENVIRONMENT_UTILITY;
  const vtkv::Status status = mount("incomplete");
  EXPECT_NE(status.message().find("not by a tool"), std::string::npos) << status.to_string();
  EXPECT_FALSE(mark());
}

TEST_F(IsolationTest, ASuspectCubeWithErrorsThatNobodyMeetsIsUsedAgain) {
  change(kLost, [](vtkv::WriteBatch* batch) { batch->put(omap_key(999'999, "key"), "nobody's"); });
  EXPECT_NE(0, m_store->fsck(false));
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).mark_cube(kLost, {CubeMark::State::suspect, "a test says so"}).ok());
  ASSERT_TRUE(mount("incomplete").ok());
  EXPECT_FALSE(mark());
  EXPECT_EQ(alert(), "");
}

TEST_F(IsolationTest, ACollectionThatCannotBeDecodedIsDamageOfItsCube) {
  change(kLost, [](vtkv::WriteBatch* batch) { batch->put(collection_key(group(99)), "no record"); });
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST_F(IsolationTest, AnOwnObjectThatCannotBeDecodedIsDamageOfItsCube) {
  spoil_pgmeta();
  const std::string refused(mount().message());
  EXPECT_NE(refused.find("cube 2 is damaged"), std::string::npos) << refused;
  EXPECT_NE(refused.find("2 placement groups lie there"), std::string::npos) << refused;
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

// What a crash of another cube leaves: cube 0 has the witness, that cube not the group.
TEST_F(IsolationTest, AGroupOfACubeThatIsThereIsNotMadeAnew) {
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  unsigned number = kGroups;
  while (!lay_in(number, 1)) {
    ++number;
  }
  make_group(number);
  unmount();
  change(1, [number](vtkv::WriteBatch* batch) {
    batch->remove(collection_key(group(number)));
    batch->remove(object_key(pgmeta_of(number)));
    batch->remove(object_key(object_of(number)));
  });
  ASSERT_TRUE(mount().ok());
  EXPECT_FALSE(m_store->collection_exists(group(number)));
  EXPECT_TRUE(m_store->collection_exists(group(in_lost_cube())));
}

// As a client's write, when its log is trimmed.
TEST_F(IsolationTest, WhatAWriteChangesOfAnInfoIsNoNewsForItsWitness) {
  ASSERT_TRUE(mount().ok());
  auto handle = m_store->open_collection(group(0));
  const uint64_t before = groups_committed_by_cube_0();
  ObjectStore::Transaction write;
  put_info(group(0), kEpoch, &write, eversion_t(kEpoch, 99));
  ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(write)));
  EXPECT_EQ(groups_committed_by_cube_0(), before);
  ObjectStore::Transaction peers;
  put_info(group(0), kEpoch + 1, &peers);
  ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(peers)));
  EXPECT_GT(groups_committed_by_cube_0(), before);
}

TEST_F(IsolationTest, ACheckNamesTheCubeThatDoesNotOpenAndGoesOnWithTheOthers) {
  remove_cube();
  CheckResult result;
  ASSERT_TRUE(m_store->check({}, &result).ok());
  EXPECT_EQ(result.errors, 1u);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].kind, FindingClass::store_does_not_open);
  EXPECT_EQ(result.findings[0].cube, kLost);
  EXPECT_GT(result.objects, 0u);
  ASSERT_TRUE(m_store->check({.cube = 1}, &result).ok());
  EXPECT_EQ(result.errors, 0u);
}

TEST_F(IsolationTest, ARepairGoesOnBehindACubeThatDoesNotOpenAndEnds) {
  for (const unsigned cube : {1u, 4u}) {
    change(cube, [](vtkv::WriteBatch* batch) { batch->put(omap_key(999'999, "key"), "nobody's"); });
  }
  remove_cube();
  CheckResult result;
  std::vector<Repaired> changes;
  ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_EQ(result.errors, 1u);
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST(WitnessedValue, AnInfoForgetsItsObjectsAndRemembersWhenItWasInUse) {
  ceph::bufferlist encoded;
  info_started_in(group(1), 30).encode(encoded);
  const auto witnessed = witnessed_value("_info", encoded.to_str());
  ASSERT_TRUE(witnessed);
  const pg_info_t info = decode_info(*witnessed).value();
  EXPECT_EQ(info.history.last_epoch_started, 30u);
  EXPECT_TRUE(info.is_incomplete() && info.is_empty());
  EXPECT_EQ(witnessed_value("_info", *witnessed), witnessed) << "once is enough";
  EXPECT_FALSE(witnessed_value("_info", "no info"));
  EXPECT_FALSE(witnessed_value("_biginfo", "none"));
  EXPECT_EQ(witnessed_value("_epoch", "any"), "any");
}

// It was empty, and is whole.
TEST(WitnessedValue, ACopyOfAGroupThatWasNeverStartedStaysWhole) {
  spg_t pgid;
  group(1).is_pg(&pgid);
  pg_info_t had(pgid);
  had.history.epoch_created = 5;
  ceph::bufferlist encoded;
  had.encode(encoded);
  EXPECT_FALSE(decode_info(*witnessed_value("_info", encoded.to_str()))->is_incomplete());
}

// Ceph does not ask it when it looks for the newest copy, either.
TEST(WitnessedValue, ACopyThatIsBeingFilledKeepsTheGroupsHistory) {
  pg_info_t had = info_started_in(group(1), 30);
  had.set_last_backfill(hobject_t());
  ceph::bufferlist encoded;
  had.encode(encoded);
  EXPECT_EQ(decode_info(*witnessed_value("_info", encoded.to_str()))->history.last_epoch_started, 29u);
}

}  // namespace
}  // namespace swimstore
