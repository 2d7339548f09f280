// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores that lose a cube, in the simulated host.

#include <gtest/gtest.h>

#include "swimstore/fsck/fsck.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/testing/database_features.h"
#include "swimstore/testing/isolation_fixture.h"

namespace swimstore {
namespace {

using IsolationTest = IsolationFixture;

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
// A crash came before the source's witness was removed.
// As where repair has quarantined its own object. An OSD that found none would say that it never had the group, and an
// older copy could become the newest.
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

// Older programs go on with such a store until then.
TEST_F(IsolationTest, ACubeThatIsMadeAnewWaitsForTheUpgradeToo) {
  const auto database = [](unsigned cube) { return CubeSet::cube_path(kPath + "/cubes", cube); };
  for (unsigned cube = 0; cube <= 4; ++cube) {
    give_database_features(&m_env, database(cube), {});
  }
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  unmount();
  ASSERT_TRUE(m_store->reset_cube(kLost, true).ok());
  EXPECT_TRUE(database_features(&m_env, database(kLost)).empty());
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(m_store->upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(database_features(&m_env, database(kLost)).incompat.contains(vtkv::kCompressedBlocksFeature));
}

TEST_F(IsolationTest, ACubeThatIsMadeAnewIsCompressedAsTheOthersWhateverTheOptionSays) {
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  unmount();
  use_small_stores(g_ceph_context, {{"swimstore_cubes", "4"}, {"swimstore_compress_metadata", "false"}});
  ASSERT_TRUE(m_store->reset_cube(kLost, true).ok());
  const vtkv::Features features = database_features(&m_env, CubeSet::cube_path(kPath + "/cubes", kLost));
  EXPECT_TRUE(features.incompat.contains(vtkv::kCompressedBlocksFeature));
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

// The mark of a repair that cannot end would keep the store from going on without the cube.
TEST_F(IsolationTest, NothingIsPutBackWhileACubeDoesNotOpen) {
  remove_cube();
  uint64_t entries = 0, left = 0;
  std::vector<Repaired> changes;
  CheckResult result;
  const vtkv::Status status = m_store->put_back(&entries, &left, &changes, &result);
  EXPECT_NE(status.message().find("cube 2 of /store does not open"), std::string::npos) << status.message();
  ASSERT_TRUE(mount("incomplete").ok());
  unmount();
  EXPECT_TRUE(m_store->put_back(&entries, &left, &changes, &result).ok()) << "it is abandoned";
}

// A controller that was away for a moment is no reason to give up what is whole.
TEST_F(IsolationTest, SeveralAtOnceAreNotAbandonedWithoutAnOperatorsWord) {
  remove_cube();
  remove_cube(kLost + 1);
  const vtkv::Status status = mount("incomplete");
  EXPECT_NE(status.message().find("2 cubes are damaged"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("/store/cube_2_failed, /store/cube_3_failed"), std::string::npos) << status.message();
  EXPECT_FALSE(mark() || mark(kLost + 1));
  for (const unsigned cube : {kLost + 1, kLost}) {
    EXPECT_FALSE(mount("incomplete").ok()) << "and that with the word for one of them, too";
    ASSERT_TRUE(StoreDirectory(&m_env, kPath).mark_cube(cube, {CubeMark::State::abandoned, "a test says so"}).ok());
  }
  ASSERT_TRUE(mount("incomplete").ok());
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
  ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(newer).ok());
  EXPECT_EQ(mount("incomplete").code(), vtkv::Status::Code::unsupported);
}

// The feature alone says nothing: what it promises is written by the next mount.
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
// As a client's write, when its log is trimmed.
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

// What was begun in another cube is ended there; then this one can be given up.
TEST_F(IsolationTest, ARepairThatWasCutShortEndsBesideACubeThatDoesNotOpen) {
  remove_cube();
  StoreDirectory directory(&m_env, kPath);
  ASSERT_TRUE(directory.begin_repair(1).ok());
  ASSERT_TRUE(directory.begin_repair(4).ok());
  EXPECT_FALSE(mount("incomplete").ok());
  CheckResult result;
  std::vector<Repaired> changes;
  ASSERT_TRUE(m_store->repair({.cube = 1}, &changes, &result).ok());
  EXPECT_TRUE(directory.is_repair_unfinished());
  ASSERT_TRUE(m_store->repair({.cube = 4}, &changes, &result).ok());
  EXPECT_FALSE(directory.is_repair_unfinished());
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

// What has ended in a cube is over, whatever becomes of that cube later.
TEST_F(IsolationTest, ARepairThatHasEndedInACubeIsNotWaitedForThere) {
  StoreDirectory directory(&m_env, kPath);
  ASSERT_TRUE(directory.begin_repair(1).ok());
  ASSERT_TRUE(directory.begin_repair(kLost).ok());
  CheckResult result;
  std::vector<Repaired> changes;
  ASSERT_TRUE(m_store->repair({.cube = kLost}, &changes, &result).ok());
  remove_cube();
  ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
  EXPECT_FALSE(directory.is_repair_unfinished());
  ASSERT_TRUE(mount("incomplete").ok());
}

TEST_F(IsolationTest, AMarkThatCannotBeReadIsOfAnyCube) {
  StoreDirectory directory(&m_env, kPath);
  ASSERT_TRUE(directory.begin_repair(1).ok());
  m_env.set_bad(vtkv::SimBad::reads, std::string(kPath) + "/repair_unfinished", 0, 1 << 20);
  CheckResult result;
  std::vector<Repaired> changes;
  ASSERT_TRUE(m_store->repair({.cube = 1}, &changes, &result).ok());
  EXPECT_TRUE(directory.is_repair_unfinished());
  ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
  EXPECT_FALSE(directory.is_repair_unfinished());
}

TEST_F(IsolationTest, ARepairThatWasBegunInTheCubeThatDoesNotOpenStaysUnfinished) {
  remove_cube();
  StoreDirectory directory(&m_env, kPath);
  for (const bool is_of_older_program : {false, true}) {
    ASSERT_TRUE((is_of_older_program ? directory.write_meta("repair_unfinished", "repair of swimstore")
                                     : directory.begin_repair(kLost))
                    .ok());
    CheckResult result;
    std::vector<Repaired> changes;
    ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
    EXPECT_TRUE(directory.is_repair_unfinished());
    const vtkv::Status refused = mount("incomplete");
    EXPECT_NE(refused.message().find("/store/cube_N_failed"), std::string::npos) << refused.message();
  }
  ASSERT_TRUE(directory.mark_cube(kLost, {CubeMark::State::abandoned, "a test says so"}).ok());
  CheckResult result;
  std::vector<Repaired> changes;
  ASSERT_TRUE(m_store->repair({}, &changes, &result).ok());
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST_F(IsolationTest, NothingIsForgottenWhileACubeDoesNotOpen) {
  remove_cube();
  uint64_t entries = 0;
  const vtkv::Status status = m_store->forget_quarantined(&entries);
  EXPECT_NE(status.message().find("cube 2 of /store does not open"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace swimstore
