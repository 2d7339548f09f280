// SPDX-License-Identifier: LGPL-2.1-or-later
// What a store knows of the placement groups whose cube or own object it has lost.

#include <gtest/gtest.h>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/witness.h"
#include "swimstore/omap/witness_writer.h"
#include "swimstore/testing/isolation_fixture.h"

namespace swimstore {
namespace {

class LostGroupsTest : public IsolationFixture {
 protected:
  static unsigned home_of_new(unsigned number) { return new_home(group(number), 5); }
};

TEST_F(LostGroupsTest, ACubeIsNotAbandonedWhenAWitnessIsDamaged) {
  change(0, [](vtkv::WriteBatch* batch) { batch->put(witness_key(group(in_lost_cube()), "_info"), "no info"); });
  spoil_pgmeta();
  EXPECT_FALSE(mount("incomplete").ok());
  EXPECT_FALSE(mark());
}

TEST_F(LostGroupsTest, AGroupThatWasMergedIntoAnotherIsNotMadeAnew) {
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

// A crash came between the record in the new cube and that, and the mount that goes on ends before its end.
TEST_F(LostGroupsTest, TheWitnessNamesTheNewCubeBeforeTheOldRecordGoes) {
  const unsigned number = in_lost_cube(), other = 1;
  ASSERT_NE(number, other);
  std::string info;
  {
    const std::unique_ptr<CubeSet> cubes = open_cubes();
    std::string value;
    CollectionRecord record;
    ASSERT_TRUE((*cubes)[kLost].database().get(collection_key(group(number)), &value).ok());
    ASSERT_TRUE(decode_collection(value, &record));
    ASSERT_GT(record.generation, 1u);
    ASSERT_TRUE((*cubes)[0].database().get(witness_key(group(other), kInfoKey), &info).ok());
    vtkv::WriteBatch old_record, old_witness;
    const CollectionRecord old(record.hash_ranges.front().hash_prefix, record.bits, 1, record.generation - 1);
    old_record.put(collection_key(group(number)), encode_collection(old));
    ASSERT_TRUE((*cubes)[1].database().write(std::move(old_record)).ok());
    old_witness.put(witness_key(group(number), ""), encode_witnessed_group({.bits = record.bits, .home = 1}));
    old_witness.put(witness_key(group(other), kInfoKey), "no info");
    ASSERT_TRUE((*cubes)[0].database().write(std::move(old_witness)).ok());
  }
  change(home_of_new(other), [&](vtkv::WriteBatch* batch) { batch->remove(object_key(pgmeta_of(other))); });
  EXPECT_FALSE(mount().ok()) << "the witness of a group without info is damaged";
  std::string ignored;
  EXPECT_FALSE((*open_cubes())[1].database().get(collection_key(group(number)), &ignored).ok());
  change(0, [&](vtkv::WriteBatch* batch) { batch->put(witness_key(group(other), kInfoKey), info); });
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  EXPECT_TRUE(m_store->collection_exists(group(number)));
}

// What a mount reads does not tell of records that are gone.
TEST_F(LostGroupsTest, NoGenerationIsGivenTwice) {
  const auto generation = [this](unsigned number) {
    std::string value;
    CollectionRecord record;
    EXPECT_TRUE((*open_cubes())[home_of_new(number)].database().get(collection_key(group(number)), &value).ok());
    EXPECT_TRUE(decode_collection(value, &record));
    return record.generation;
  };
  const unsigned last = kGroups - 1;
  const uint64_t before = generation(last);
  ASSERT_TRUE(mount().ok());
  {
    auto handle = m_store->open_collection(group(last));
    ObjectStore::Transaction txn;
    txn.remove(group(last), pgmeta_of(last));
    txn.remove(group(last), object_of(last));
    txn.remove_collection(group(last));
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  unmount();
  ASSERT_TRUE(mount().ok());
  make_group(last);
  unmount();
  EXPECT_GT(generation(last), before);
}

TEST_F(LostGroupsTest, AGroupThatHasLostItsInfoIsToBeFilledAnew) {
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

// An OSD, or a tool, removes all objects of a group in several transactions, its own object first.
TEST_F(LostGroupsTest, AGroupWhoseRemovalWasCutShortIsNotMadeAnew) {
  const unsigned number = in_lost_cube();
  ASSERT_TRUE(mount().ok());
  auto handle = m_store->open_collection(group(number));
  ObjectStore::Transaction txn;
  txn.remove(group(number), pgmeta_of(number));
  ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  handle.reset();
  for (unsigned i = 0; i < 2; ++i) {
    unmount();
    ASSERT_TRUE(mount().ok());
    EXPECT_FALSE(read_info(*m_store, group(number)));
  }
}

TEST_F(LostGroupsTest, ARemovedGroupIsNotMadeAnew) {
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

TEST_F(LostGroupsTest, AnOlderStoreGetsWitnessesWithAnUpgradeAndAMount) {
  make_older();
  ASSERT_TRUE(mount().ok());
  unmount();
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(m_store->upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(before.is_upgradable());
  EXPECT_FALSE(after.is_upgradable());
  ASSERT_TRUE(mount().ok());
  unmount();
  remove_cube();
  ASSERT_TRUE(mount("incomplete").ok());
  expect_the_others_served();
}

TEST_F(LostGroupsTest, AnOlderStoreDoesNotGoOnWithoutACube) {
  make_older();
  remove_cube();
  EXPECT_FALSE(mount("incomplete").ok());
  EXPECT_FALSE(mark());
  Superblock before, after;
  bool changed = false;
  EXPECT_EQ(m_store->upgrade(&before, &after, &changed).code(), vtkv::Status::Code::failed)
      << "it is too late for that";
}

TEST_F(LostGroupsTest, ACubeThatIsLostBetweenTheUpgradeAndAMountIsNotAbandoned) {
  make_older();
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(m_store->upgrade(&before, &after, &changed).ok());
  remove_cube();
  const vtkv::Status status = mount("incomplete");
  EXPECT_NE(status.message().find("since its upgrade"), std::string::npos) << status.to_string();
  EXPECT_FALSE(mark());
}

TEST_F(LostGroupsTest, AGroupOfACubeThatIsThereIsNotMadeAnew) {
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

TEST_F(LostGroupsTest, WhatAWriteChangesOfAnInfoIsNoNewsForItsWitness) {
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

const coll_t kGroup(spg_t(pg_t(1, 2)));

TEST(WitnessedValue, AnInfoForgetsItsObjectsAndRemembersWhenItWasInUse) {
  ceph::bufferlist encoded;
  info_started_in(kGroup, 30).encode(encoded);
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
  kGroup.is_pg(&pgid);
  pg_info_t had(pgid);
  had.history.epoch_created = 5;
  ceph::bufferlist encoded;
  had.encode(encoded);
  EXPECT_FALSE(decode_info(*witnessed_value("_info", encoded.to_str()))->is_incomplete());
}

// Ceph does not ask it when it looks for the newest copy, either.
TEST(WitnessedValue, ACopyThatIsBeingFilledKeepsTheGroupsHistory) {
  pg_info_t had = info_started_in(kGroup, 30);
  had.set_last_backfill(hobject_t());
  ceph::bufferlist encoded;
  had.encode(encoded);
  EXPECT_EQ(decode_info(*witnessed_value("_info", encoded.to_str()))->history.last_epoch_started, 29u);
}

}  // namespace
}  // namespace swimstore
