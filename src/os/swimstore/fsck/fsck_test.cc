// SPDX-License-Identifier: LGPL-2.1-or-later
// What the check says of damages that repair does not fix, fixes in part, or meets in the middle of its work.

#include "swimstore/fsck/fsck.h"

#include "swimstore/format/omap_row.h"
#include "swimstore/testing/damage_fixture.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {

namespace {

class FsckTest : public DamageFixture {
 protected:
  static void copy_without_data(Cube& cube, Damage& damage, uint64_t nid, const ghobject_t& to) {
    Stored object = stored(cube, "small");
    if (nid != 0) {
      object.record.nid = nid;
    }
    object.record.size = 0;
    object.shard = {};
    std::string value;
    encode_onode(object.record, object.shard, &value);
    damage.batch.put(object_key(to), value);
  }
  // Into the tree, so that it is read from disk.
  void flush() {
    damage([](Cube& cube, Damage&) { ASSERT_TRUE(cube.database().flush().ok()); });
  }
  bool says(const std::string& text) const {
    return std::any_of(m_result.findings.begin(), m_result.findings.end(),
                       [&](const Finding& finding) { return finding.text.find(text) != std::string::npos; });
  }
  static constexpr uint64_t kManyObjects = 1100;
  void put_objects_in_no_collection(int64_t pool) {
    damage([pool](Cube&, Damage& damage) {
      for (uint64_t i = 0; i < kManyObjects; ++i) {
        Stored object;
        object.record.nid = kNobody + i;
        std::string value;
        encode_onode(object.record, object.shard, &value);
        damage.batch.put(object_key(named(std::to_string(i), pool)), value);
      }
      damage.delta.pools[pool].objects = kManyObjects;
    });
  }
  void remove_object(const std::string& name) {
    mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      Transaction txn;
      txn.remove(kPg, named(name));
      store.queue_transaction(pg, std::move(txn));
    });
  }
  // What a check of a store in use says.
  std::multiset<std::string> texts_in_passes(unsigned passes) {
    SwimStore store(g_ceph_context, m_path, m_env);
    EXPECT_TRUE(store.check({.online = true, .passes = passes}, &m_result).ok());
    EXPECT_EQ(m_result.errors, m_result.findings.size());
    std::multiset<std::string> texts;
    for (const Finding& finding : m_result.findings) {
      texts.insert(finding.text);
    }
    return texts;
  }
  vtkv::Status try_repair() {
    SwimStore store(g_ceph_context, m_path, m_env);
    m_changes.clear();
    return store.repair({}, &m_changes, &m_result);
  }
};

}  // namespace

// ---- collections and objects

TEST_P(FsckTest, CollectionThatCannotBeDecodedKeepsTheStoreFromServing) {
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"Cjunk", ""}, {collection_key(coll_t(spg_t(pg_t(5, 5)))), "junk"}}) {
    put(key, value);
    EXPECT_EQ(Kinds({FindingClass::collection_undecodable}), check());
    SwimStore store(g_ceph_context, m_path, m_env);
    EXPECT_EQ(-EIO, store.mount());
    damage([&key = key](Cube&, Damage& damage) { damage.batch.remove(key); });
  }
  EXPECT_EQ(Kinds(), check());
}

TEST_P(FsckTest, CollectionsMustNotOverlap) {
  put(collection_key(coll_t(spg_t(pg_t(1, 1)))), encode_collection({0, 0, 0, 0}));
  EXPECT_EQ(Kinds({FindingClass::collections_overlap}), check());
}

TEST_P(FsckTest, ObjectMustLieInACollection) {
  damage([](Cube& cube, Damage& damage) {
    copy_without_data(cube, damage, kNobody, named("stray", 3));
    damage.delta.pools[3].objects = 1;
  });
  EXPECT_EQ(Kinds({FindingClass::object_in_no_collection}), check());
  EXPECT_TRUE(says("stray"));
  // Before the first collection, too.
  damage([](Cube& cube, Damage& damage) {
    damage.batch.remove(object_key(named("stray", 3)));
    copy_without_data(cube, damage, kNobody, named("stray", -40));
    damage.delta.pools[3].objects = -1;
    damage.delta.pools[38].objects = 1;
  });
  EXPECT_EQ(Kinds({FindingClass::object_in_no_collection}), check());
}

TEST_P(FsckTest, TemporaryObjectsCountForTheirPool) {
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    auto data = bytes(5000, 't');
    txn.write(kPg, named("temporary", -3), 0, 5000, data);
    txn.touch(kPg, named("empty"));
    store.queue_transaction(pg, std::move(txn));
  });
  EXPECT_EQ(Kinds(), check(true));
  EXPECT_EQ(7u, m_result.objects);
}

TEST_P(FsckTest, TwoObjectsMustNotHaveOneId) {
  damage([](Cube& cube, Damage& damage) {
    copy_without_data(cube, damage, 0, named("twin"));
    damage.delta.pools[1].objects = 1;
  });
  EXPECT_EQ(Kinds({FindingClass::object_id_twice}), check());
  EXPECT_TRUE(says("have the same id"));
}

TEST_P(FsckTest, DataPastTheEndOfItsObjectIsFound) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    object.record.size = 100;
    store(damage, "small", object);
  });
  EXPECT_EQ(Kinds({FindingClass::extents_past_end, FindingClass::usage_wrong}), check());
}

// ---- keys that are none: quarantined

TEST_P(FsckTest, KeysThatAreNoneAreQuarantined) {
  put("Ejunk", "");
  EXPECT_EQ(Kinds({FindingClass::extents_orphaned}), check());
  EXPECT_TRUE(says("the key of an extent shard is damaged: 456a756e6b"));
  EXPECT_EQ(Kinds(), repair());

  put("Hx", "");
  put("Mx", "");
  EXPECT_EQ(Kinds({FindingClass::omap_orphaned}), check());
  EXPECT_TRUE(says("the key of an omap header is damaged") && says("the key of omap keys is damaged"));
  EXPECT_EQ(Kinds(), repair());

  put("Sx", "");
  EXPECT_EQ(Kinds({FindingClass::slot_count_wrong}), check());
  EXPECT_TRUE(says("slot reference 5378 is damaged"));
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(4u, m_result.quarantined_entries);

  put("Lx", "");  // no error: it is in quarantine already
  EXPECT_EQ(Kinds(), check());
  EXPECT_EQ(5u, m_result.quarantined_entries);
  EXPECT_EQ(5u, forget_quarantined());
  EXPECT_EQ(0u, forget_quarantined());
  EXPECT_EQ(Kinds(), check());
  expect_unchanged_but({});
}

TEST_P(FsckTest, ShardBesideAnInlineOneIsQuarantined) {
  damage([](Cube& cube, Damage& damage) {
    std::string empty;
    encode_extent_shard({}, &empty);
    damage.batch.put(extent_key(stored(cube, "small").record.nid, 0), empty);
  });
  EXPECT_EQ(Kinds({FindingClass::extents_orphaned}), check());
  EXPECT_TRUE(says("beside an inline one"));
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

TEST_P(FsckTest, NothingIsOrphanedWhileAnOwnerMayBeUnreadable) {
  damage([](Cube&, Damage& damage) {
    damage.batch.put("Obroken", "value");
    std::string empty;
    encode_extent_shard({}, &empty);
    damage.batch.put(extent_key(kNobody, 0), empty);
    damage.batch.put(omap_key(kNobody, "key"), "value");
  });
  EXPECT_EQ(Kinds({FindingClass::object_undecodable}), check());
  EXPECT_EQ(2u, m_result.unclear);
}

// Each may be met in another pass than the others, so check() compares what passes find with what one does.
TEST_P(FsckTest, OneDamageHidesNoOtherButWhereOwnersAreUnknown) {
  damage([](Cube& cube, Damage& damage) {
    std::string shard;
    encode_extent_shard(stored(cube, "small").shard, &shard);
    for (uint64_t nid = kNobody; nid < kNobody + 12; ++nid) {
      damage.batch.put(extent_key(nid, 0), shard);
      damage.batch.put(omap_key(nid, "key"), "value");
      damage.batch.put(omap_floor_key(nid), encode_omap_floor(7));
      damage.batch.put(omap_row_key(nid, "key"), "damaged");
      damage.batch.put(slot_reference_key({0, nid}, 0), references(3, 1));
      damage.batch.put(slot_reference_key({0, nid + 12}, 0), "damaged");
    }
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(cube.containers().allocate(12 * 4096, &slots).ok());
    for (const AllocatedSlot& slot : slots) {
      damage.delta.allocation.allocated.push_back(SlotBlocks::all(slot.address));
    }
  });
  Kinds kinds = {FindingClass::extents_orphaned, FindingClass::omap_orphaned, FindingClass::only_copy_undecodable,
                 FindingClass::slot_count_wrong, FindingClass::slot_leaked};
  EXPECT_EQ(kinds, check());
  EXPECT_EQ(0u, m_result.unclear);

  // Of the slots it may own any; an orphan it cannot have.
  damage(
      [](Cube& cube, Damage& damage) { damage.batch.put(extent_key(stored(cube, "large").record.nid, 2), "damaged"); });
  kinds.insert(FindingClass::extents_undecodable);
  kinds.erase(FindingClass::slot_leaked);
  EXPECT_EQ(kinds, check());

  put("Obroken", "value");
  kinds.insert(FindingClass::object_undecodable);
  kinds.erase(FindingClass::extents_orphaned);
  kinds.erase(FindingClass::omap_orphaned);
  EXPECT_EQ(kinds, check());
}

// ---- slots and sums

TEST_P(FsckTest, CountsOfSlotsThatNobodyHasOrOneHasAloneGo) {
  damage([](Cube& cube, Damage& damage) {
    damage.batch.put(slot_reference_key({0, 900}, 0), references(3, 1));
    damage.batch.put(slot_reference_key(stored(cube, "small").shard.extents.front().slot, 0), references(99, 1));
  });
  EXPECT_EQ(Kinds({FindingClass::slot_count_wrong}), check());
  EXPECT_EQ(2u, m_result.errors);
  EXPECT_EQ(Kinds(), repair());
  damage([](Cube& cube, Damage&) {
    std::string value;
    EXPECT_TRUE(cube.database().get(slot_reference_key({0, 900}, 0), &value).is_not_found());
  });
  expect_unchanged_but({});
}

// A shard of another pass's object may hold the references that are missing, and a shard of nobody does not.
TEST_P(FsckTest, AnUndecodableShardOfNobodyHushesNothingInSeveralPasses) {
  damage([](Cube&, Damage& damage) {
    damage.batch.put(extent_key(kNobody + 1, 0), "junk");
    damage.batch.put(omap_key(kNobody + 2, "key"), "value");
    for (uint64_t slot = 900; slot < 906; ++slot) {
      damage.batch.put(slot_reference_key({0, slot}, 0), references(3, 1));
    }
  });
  EXPECT_EQ(8u, texts_in_passes(1).size());
  EXPECT_EQ(texts_in_passes(1), texts_in_passes(3));
  // One of an object's hushes them all.
  damage([](Cube& cube, Damage& damage) { damage.batch.put(extent_key(stored(cube, "large").record.nid, 0), "junk"); });
  for (const unsigned passes : {1, 3}) {
    for (const std::string& text : texts_in_passes(passes)) {
      EXPECT_EQ(std::string::npos, text.find("fewer than are counted")) << text;
    }
    EXPECT_GE(m_result.unclear, 6u);
  }
}

// The quarantined object may be one of those that share the slot: its count is raised, never lowered.
TEST_P(FsckTest, CountsAreNotLoweredWhileOwnersAreQuarantined) {
  SlotAddress shared;
  damage([&](Cube& cube, Damage& damage) {
    std::string shard_bytes;
    ExtentShard shard;
    ASSERT_TRUE(cube.database().get(extent_key(stored(cube, "large").record.nid, 0), &shard_bytes).ok());
    ASSERT_TRUE(decode_extent_shard(shard_bytes, &shard));
    shared = shard.extents.front().slot;
    damage.batch.put(object_key(named("small")), "damaged");
    damage.batch.put(slot_reference_key(shared, 0), references(1000, 64));
  });
  EXPECT_EQ(Kinds(), repair());  // the object alone
  const uint64_t unclear = m_result.unclear;
  EXPECT_GT(unclear, 0u);
  damage([&](Cube&, Damage& damage) { damage.batch.remove(slot_reference_key(shared, 0)); });
  EXPECT_EQ(Kinds({FindingClass::slot_count_wrong}), check());
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({"small"});
}

TEST_P(FsckTest, SlotThatSeveralReferToIsClaimedOnce) {
  damage([](Cube& cube, Damage& damage) {
    std::string shard_bytes;
    ExtentShard shard;
    ASSERT_TRUE(cube.database().get(extent_key(stored(cube, "large").record.nid, 0), &shard_bytes).ok());
    ASSERT_TRUE(decode_extent_shard(shard_bytes, &shard));
    damage.delta.allocation.freed.push_back(SlotBlocks::all(shard.extents.front().slot));
  });
  EXPECT_EQ(Kinds({FindingClass::slot_not_owned}), check());
  EXPECT_GT(m_result.errors, 1u);
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(1u, m_changes.size());
  expect_unchanged_but({});
}

TEST_P(FsckTest, SlotPastTheEndOfItsContainerIsGivenUp) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    damage.delta.allocation.freed.push_back(SlotBlocks::all(object.shard.extents.front().slot));
    object.shard.extents.front().slot.index = 1u << 30;
    store(damage, "small", object);
  });
  EXPECT_EQ(Kinds({FindingClass::slot_not_owned}), check());
  ASSERT_TRUE(try_repair().ok());
  EXPECT_TRUE(m_changes.empty());
  EXPECT_EQ(1u, m_result.errors);
}

TEST_P(FsckTest, ConflictsOfShardsWithEntriesOfTheirOwnAreShared) {
  damage([](Cube& cube, Damage& damage) {
    ExtentShard shards[2];
    for (uint32_t number = 0; number < 2; ++number) {
      std::string bytes;
      ASSERT_TRUE(cube.database().get(extent_key(stored(cube, "large").record.nid, number), &bytes).ok());
      ASSERT_TRUE(decode_extent_shard(bytes, &shards[number]));
    }
    shards[0].extents.front().shared = false;
    shards[1] = shards[0];  // each says that it has the slot for itself
    for (uint32_t number = 0; number < 2; ++number) {
      std::string value;
      encode_extent_shard(shards[number], &value);
      damage.batch.put(extent_key(stored(cube, "large").record.nid, number), value);
    }
  });
  EXPECT_TRUE(check().contains(FindingClass::slot_claimed_twice));
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({"large"});
}

TEST_P(FsckTest, EachSumOfAPoolIsLookedAt) {
  for (const PoolUsage& wrong : {PoolUsage{.stored = 17}, PoolUsage{.allocated = 4096}, PoolUsage{.objects = 1}}) {
    damage([&](Cube&, Damage& damage) { damage.delta.pools[8] = wrong; });
    EXPECT_EQ(Kinds({FindingClass::usage_wrong}), check());
    EXPECT_EQ(Kinds(), repair());
    EXPECT_EQ(1u, m_changes.size());  // the other pool was right
  }
}

// ---- many

TEST_P(FsckTest, ThousandFindingsOfEachClassAreKeptAllAreCountedAndRepaired) {
  damage([](Cube&, Damage& damage) {
    for (uint64_t i = 0; i < 1100; ++i) {
      damage.batch.put(omap_key(kNobody + i, "key"), std::string(300, 'v'));
    }
    for (uint64_t i = 0; i < 1200; ++i) {
      damage.batch.put(extent_key(kNobody + i, 0), "value");
    }
  });
  SwimStore store(g_ceph_context, m_path, m_env);
  ASSERT_TRUE(store.check({}, &m_result).ok());
  EXPECT_EQ(2300u, m_result.errors);
  EXPECT_EQ(2000u, m_result.findings.size());
  EXPECT_EQ(2300, store.fsck(false));
  EXPECT_EQ(0, store.repair(false));
  EXPECT_EQ(0, store.quick_fix());
  EXPECT_EQ(2300u, forget_quarantined());
  expect_unchanged_but({});
}

// As when the record of a collection is damaged.
TEST_P(FsckTest, ManyFindingsOfOneClassHideNoneOfAnother) {
  put_objects_in_no_collection(0);
  put(object_key(named("small")), "damaged");
  ASSERT_TRUE(try_repair().ok());
  EXPECT_EQ(kManyObjects, m_result.errors);
  EXPECT_EQ(1u, m_result.quarantined_entries);
}

// A slot that three objects claim, one of which cannot be decoded: it is told after a thousand findings of another
// class.
TEST_P(FsckTest, AnOwnerThatIsToldLateIsNotForgottenInACount) {
  SlotBlocks claimed;
  damage([&](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    object.shard = stored(cube, "other").shard;
    claimed = object.shard.extents.front().blocks();
    store(damage, "small", object);
    damage.batch.put(object_key(named("third", 3)), "damaged");
  });
  put_objects_in_no_collection(2);
  ASSERT_TRUE(try_repair().ok());
  EXPECT_EQ(kManyObjects, m_result.errors);
  remove_object("small");
  remove_object("other");
  damage([&](Cube& cube, Damage&) { EXPECT_TRUE(cube.containers().is_owned(claimed)); });
}

// The same where the third was quarantined earlier, and only the count is wrong.
TEST_P(FsckTest, AQuarantinedOwnerIsNotForgottenInACount) {
  SlotBlocks shared;
  damage([&](Cube& cube, Damage& damage) {
    damage.batch.put(extent_key(stored(cube, "clone").record.nid, 2), "damaged");
    std::string bytes;
    ExtentShard shard;
    ASSERT_TRUE(cube.database().get(extent_key(stored(cube, "large").record.nid, 0), &bytes).ok());
    ASSERT_TRUE(decode_extent_shard(bytes, &shard));
    shared = shard.extents.front().blocks();
  });
  EXPECT_EQ(Kinds(), repair());
  put(slot_reference_key(shared.slot, 0), "damaged");
  EXPECT_EQ(Kinds(), repair());
  remove_object("large");
  damage([&](Cube& cube, Damage&) { EXPECT_TRUE(cube.containers().is_owned(shared)); });
}

// The first thousand of a class cannot be repaired, others can.
TEST_P(FsckTest, WhatCannotBeRepairedIsNotInTheWayOfWhatCan) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    for (uint64_t i = 0; i < 1100; ++i) {
      Stored absurd = object;
      absurd.record.nid = kNobody + i;
      absurd.shard.extents.front().slot.index = (1u << 30) + i;  // past the end of its container
      store(damage, "a" + std::to_string(i), absurd);
    }
    damage.delta.allocation.freed.push_back(SlotBlocks::all(stored(cube, "other").shard.extents.front().slot));
  });
  (void)try_repair();
  damage([&](Cube& cube, Damage&) {
    EXPECT_TRUE(cube.containers().is_owned(stored(cube, "other").shard.extents.front().blocks()));
  });
}

// ---- what cannot be read

TEST_P(FsckTest, TreeThatCannotBeReadIsFoundAndNothingIsConcludedFromIt) {
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    for (unsigned i = 0; i < 400; ++i) {  // several blocks of the tree
      txn.touch(kPg, named("touched" + std::to_string(i)));
    }
    store.queue_transaction(pg, std::move(txn));
  });
  m_before = contents();
  damage([](Cube& cube, Damage& damage) {
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(cube.containers().allocate(4096, &slots).ok());
    damage.delta.allocation.allocated.push_back(SlotBlocks::all(slots.front().address));
  });
  flush();
  const std::string tree = m_path + "/cubes/0/tree";
  std::unique_ptr<vtkv::File> file;
  uint64_t size = 0;
  ASSERT_TRUE(m_env->open_file(tree, {.direct = false}, &file).ok());
  ASSERT_TRUE(file->size(&size).ok());
  file.reset();
  unsigned unreadable = 0;
  for (uint64_t block = 0; block < size; block += 4096) {
    m_simulated.flip_bits(tree, block + 40, 0x10);
    if (check(true).contains(FindingClass::metadata_unreadable)) {
      ++unreadable;
      EXPECT_TRUE(says("cannot all be read"));
      EXPECT_EQ(texts_in_passes(1), texts_in_passes(3));  // one block is one error
      EXPECT_TRUE(check(true).contains(FindingClass::database_damaged));
      ASSERT_TRUE(try_repair().ok());
      for (const Repaired& change : m_changes) {
        EXPECT_NE(FindingClass::slot_leaked, change.kind) << change.text;
        EXPECT_NE(FindingClass::usage_wrong, change.kind) << change.text;
      }
    }
    m_simulated.flip_bits(tree, block + 40, 0x10);
  }
  EXPECT_GT(unreadable, 0u);
  EXPECT_EQ(Kinds({FindingClass::slot_leaked}), check(true));
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

// The n-th read fails, for n = 1, 2, … until repair runs clean: it says so or works around it, and the next one
// repairs.
TEST_P(FsckTest, RepairThatMeetsReadErrorsLosesNothing) {
  for (const bool persistent : {false, true}) {
    uint64_t n = 0;
    for (bool reached = true; reached;) {
      damage([](Cube& cube, Damage& damage) {
        damage.batch.put(omap_key(kNobody, "one"), "1");
        damage.batch.put(omap_key(kNobody, "two"), "2");
        Stored object = stored(cube, "omap");
        object.record.set(OnodeRecord::has_omap, false);
        store(damage, "omap", object);
        damage.batch.put(slot_reference_key({0, 900}, 0), references(3, 1));
      });
      flush();
      vtkv::NthFailure failure(&m_simulated, vtkv::SimCall::read, ++n, persistent);
      (void)try_repair();
      reached = failure.end();
      ASSERT_TRUE(try_repair().ok()) << n;
      ASSERT_EQ(0u, m_result.errors) << n << ": " << m_result.findings.front().text;
      ASSERT_LT(n, 5000u);
    }
    expect_unchanged_but({});
    EXPECT_GT(n, 5u);
  }
}

TEST_P(FsckTest, FailedWriteEndsRepairAndLeavesItToTheNext) {
  put(omap_key(kNobody, "key"), "value");
  {
    SwimStore store(g_ceph_context, m_path, m_env);
    int fatal = 0;
    store.set_fatal_handler([&](const vtkv::Status&) { ++fatal; });
    // The first write is that of the record which ends recovery, for the first check; the second one that of the mark.
    m_simulated.fail_nth(vtkv::SimCall::write, 3, vtkv::Status::from_errno(EIO, "injected"), false);
    EXPECT_LT(store.repair(false), 0);
    EXPECT_EQ(1, fatal);
  }
  m_simulated.clear_faults();
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

TEST_P(FsckTest, StoreThatIsNotThereIsAnErrorAndNoFinding) {
  SwimStore store(g_ceph_context, "/nowhere", m_env);
  EXPECT_EQ(-ENOENT, store.fsck(false));
  EXPECT_EQ(-ENOENT, store.repair(false));
  uint64_t entries = 0;
  EXPECT_TRUE(store.forget_quarantined(&entries).is_not_found());
}

INSTANTIATE_TEST_SUITE_P(, FsckTest, ::testing::Values(Host::simulated),
                         [](const auto&) { return std::string("Simulated"); });

}  // namespace swimstore
