// SPDX-License-Identifier: LGPL-2.1-or-later
// Every class of findings that repair fixes: a small store is damaged, the check says what is wrong, repair fixes
// it, the check is content, and no other object changed. In a simulated host, also with a check in several passes, and
// with real files.

#include "swimstore/fsck/repair.h"

#include <random>

#include "osd/osd_types.h"

#include "swimstore/directory/store_directory.h"
#include "swimstore/format/collection_record.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/format/superblock.h"
#include "swimstore/testing/damage_fixture.h"

namespace swimstore {

namespace {

class RepairTest : public DamageFixture {};

}  // namespace

TEST_P(RepairTest, AnUndecodableObjectIsQuarantined) {
  put(object_key(named("small")), "damaged");
  EXPECT_EQ(Kinds({FindingClass::object_undecodable}), check());
  EXPECT_GT(m_result.unclear, 0u);  // its slots
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(1u, m_result.quarantined_entries);
  EXPECT_FALSE(exists("small"));
  expect_unchanged_but({"small"});
}

TEST_P(RepairTest, SlotsOfAQuarantinedObjectStayOwnedUntilItIsForgotten) {
  put(object_key(named("small")), "damaged");
  EXPECT_EQ(Kinds(), repair());
  const uint64_t held = m_result.unclear;
  EXPECT_GT(held, 0u);
  EXPECT_EQ(1u, forget_quarantined());
  EXPECT_EQ(Kinds({FindingClass::slot_leaked}), check());
  EXPECT_EQ(held, m_result.errors);
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(0u, m_result.quarantined_entries + m_result.unclear);
  expect_unchanged_but({"small"});
}

TEST_P(RepairTest, WhatWasQuarantinedBeforeUnderTheSameNameIsKept) {
  for (unsigned times = 1; times <= 2; ++times) {
    put(object_key(named("small")), "damaged");
    EXPECT_EQ(Kinds(), repair());
    EXPECT_EQ(times, m_result.quarantined_entries);
    mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
      Transaction txn;
      txn.touch(kPg, named("small"));
      store.queue_transaction(pg, std::move(txn));
    });
  }
  expect_unchanged_but({"small"});
}

TEST_P(RepairTest, AnObjectWhoseExtentsAreUndecodableIsQuarantinedAsAWhole) {
  damage(
      [](Cube& cube, Damage& damage) { damage.batch.put(extent_key(stored(cube, "large").record.nid, 2), "damaged"); });
  EXPECT_EQ(Kinds({FindingClass::extents_undecodable}), check());
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(1u + 5u, m_result.quarantined_entries);  // its record, its shards
  EXPECT_FALSE(exists("large"));
  expect_unchanged_but({"large"});
  // The clone's data is shared with what is in quarantine: both stay.
  EXPECT_EQ(m_before[named("clone")], contents()[named("clone")]);
}

TEST_P(RepairTest, OmapRowsOfNobodyAreQuarantined) {
  std::string row;
  encode_omap_row({OmapRow::Kind::value, 7, "value"}, &row);
  put(omap_row_key(kNobody, "a"), row);
  put(omap_row_key(kNobody, "b"), row);
  EXPECT_EQ(Kinds({FindingClass::omap_orphaned}), check());
  EXPECT_EQ(1u, m_result.errors);
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(2u, m_result.quarantined_entries);
  expect_unchanged_but({});
}

TEST_P(RepairTest, ADamagedOmapRowIsQuarantinedOnlyByOption) {
  put(omap_floor_key(kNobody), encode_omap_floor(7));  // of an object that was removed
  put(omap_row_key(kNobody, "a"), "damaged");
  EXPECT_EQ(Kinds({FindingClass::only_copy_undecodable}), check());
  SwimStore store(g_ceph_context, m_path, m_env);
  ASSERT_TRUE(store.repair({}, &m_changes, &m_result).ok());
  EXPECT_EQ(1u, m_result.errors);
  ASSERT_TRUE(store.repair({.only_copies = true}, &m_changes, &m_result).ok());
  EXPECT_EQ(0u, m_result.errors);
  EXPECT_EQ(1u, m_result.quarantined_entries);
}

// A PG's record, and what the OSD keeps for itself: to lose them is to lose the PG on this OSD, or the OSD.
TEST_P(RepairTest, WhatNoOtherOsdHasIsQuarantinedOnlyByOption) {
  const ghobject_t pg_record = spg_t(pg_t(0, 1)).make_pgmeta_oid();
  const ghobject_t osdmap(hobject_t(sobject_t(object_t("osdmap.7"), 0)));
  ASSERT_TRUE(osdmap.hobj.is_meta());
  for (const ghobject_t& oid : {pg_record, osdmap}) {
    put(object_key(oid), "damaged");
    EXPECT_EQ(Kinds({FindingClass::only_copy_undecodable}), check());
    EXPECT_NE(std::string::npos, m_result.findings.front().text.find("no other OSD has a copy"));
    SwimStore store(g_ceph_context, m_path, m_env);
    ASSERT_TRUE(store.repair({}, &m_changes, &m_result).ok());
    EXPECT_TRUE(m_changes.empty());
    EXPECT_EQ(1u, m_result.errors);
    ASSERT_TRUE(store.repair({.only_copies = true}, &m_changes, &m_result).ok());
    EXPECT_EQ(1u, m_changes.size());
    EXPECT_EQ(0u, m_result.errors);
    m_changes.clear();
    EXPECT_EQ(1u, forget_quarantined());
    EXPECT_EQ(Kinds(), check());
  }
  expect_unchanged_but({});
}

TEST_P(RepairTest, WhatWasQuarantinedIsPutBack) {
  std::string record;
  damage([&](Cube& cube, Damage& damage) {
    ASSERT_TRUE(cube.database().get(object_key(named("omap")), &record).ok());
    damage.batch.put(object_key(named("omap")), "damaged");
  });
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(3u, m_result.quarantined_entries);  // record, omap header and key
  // A later program may read what this one does not.
  put(quarantined_key(0, object_key(named("omap"))), record);
  put_back();
  EXPECT_EQ(3u, m_put_back);
  EXPECT_EQ(0u, m_left + m_result.errors + m_result.quarantined_entries);
  expect_unchanged_but({});
}

TEST_P(RepairTest, WhatIsPutBackIsInNobodysPlace) {
  put(object_key(named("small")), "damaged");
  EXPECT_EQ(Kinds(), repair());
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.touch(kPg, named("small"));
    store.queue_transaction(pg, std::move(txn));
  });
  put_back();
  EXPECT_EQ(0u, m_put_back);
  EXPECT_EQ(1u, m_left);
  EXPECT_EQ(0u, m_result.errors);
  EXPECT_TRUE(exists("small"));
}

// What is put back and still cannot be decoded owns what nobody else claims.
TEST_P(RepairTest, WhatIsPutBackKeepsItsSlots) {
  damage(
      [](Cube& cube, Damage& damage) { damage.batch.put(extent_key(stored(cube, "large").record.nid, 2), "damaged"); });
  EXPECT_EQ(Kinds(), repair());
  const uint64_t quarantined = m_result.quarantined_entries;
  put_back();
  EXPECT_EQ(quarantined, m_put_back);
  EXPECT_EQ(0u, m_result.quarantined_entries);
  for (const Repaired& change : m_changes) {
    EXPECT_NE(FindingClass::slot_leaked, change.kind) << change.text;
  }
  EXPECT_EQ(Kinds({FindingClass::extents_undecodable}), check());
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(quarantined, m_result.quarantined_entries);
  expect_unchanged_but({"large"});
}

TEST_P(RepairTest, OrphanedExtentsAreQuarantined) {
  std::string empty;
  encode_extent_shard({}, &empty);
  put(extent_key(kNobody, 3), empty);
  EXPECT_EQ(Kinds({FindingClass::extents_orphaned}), check());
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(1u, m_result.quarantined_entries);
  expect_unchanged_but({});
}

TEST_P(RepairTest, OrphanedOmapIsQuarantined) {
  damage([](Cube&, Damage& damage) {
    damage.batch.put(omap_header_key(kNobody), "header");
    damage.batch.put(omap_key(kNobody, "one"), "1");
    damage.batch.put(omap_key(kNobody, "two"), "2");
  });
  EXPECT_EQ(Kinds({FindingClass::omap_orphaned}), check());
  EXPECT_EQ(2u, m_result.errors);  // the header, the keys
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(3u, m_result.quarantined_entries);
  expect_unchanged_but({});
}

TEST_P(RepairTest, OmapThatAnObjectDoesNotAnnounceIsItsAgain) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "omap");
    object.record.set(OnodeRecord::has_omap, false);
    store(damage, "omap", object);
  });
  EXPECT_EQ(Kinds({FindingClass::omap_unannounced}), check());
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

TEST_P(RepairTest, ASlotThatTwoObjectsClaimIsSharedByThem) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    object.shard = stored(cube, "other").shard;
    store(damage, "small", object);
  });
  const Kinds found = check();
  EXPECT_TRUE(found.contains(FindingClass::slot_claimed_twice));
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({"small"});
  // Neither can take it from the other.
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    Transaction txn;
    txn.remove(kPg, named("small"));
    store.queue_transaction(pg, std::move(txn));
  });
  EXPECT_EQ(Kinds(), check(true));
  expect_unchanged_but({"small"});
}

// What the other one has in memory is not taken for its own.
TEST_P(RepairTest, OfASlotThatTwoClaimOnlyWhoseChecksumsMatchReadsIt) {
  damage([](Cube& cube, Damage& damage) {
    Stored object = stored(cube, "small");
    const auto own = object.shard.crc32c;
    object.shard = stored(cube, "other").shard;
    object.shard.crc32c = own;
    store(damage, "small", object);
  });
  const auto read_both = [](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    ceph::bufferlist bytes;
    EXPECT_GT(store.read(pg, named("other"), 0, 0, bytes), 0);
    EXPECT_EQ(store.read(pg, named("small"), 0, 0, bytes), -EIO);
  };
  mounted(read_both);
  EXPECT_EQ(Kinds(), repair());
  mounted(read_both);
}

// Of a blob in two slots one is claimed by another object, too. Then a snapshot comes and goes: the head keeps both.
TEST_P(RepairTest, ABlobOfWhichASlotIsSharedIsSharedAsAWhole) {
  std::string text(65536, 'a');  // compressed to 9 blocks, which take a slot of 8 and one of 1
  std::mt19937 random(1);
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = i % 4096 < 2200 ? static_cast<char>(random()) : 'a';
  }
  mounted([&](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    pool_opts_t options;
    options.set(pool_opts_t::COMPRESSION_MODE, std::string("force"));
    ASSERT_EQ(0, store.set_collection_opts(pg, options));
    Transaction txn;
    ceph::bufferlist data;
    data.append(text);
    txn.write(kPg, named("blob"), 0, data.length(), data);
    store.queue_transaction(pg, std::move(txn));
  });
  m_before = contents();
  damage([](Cube& cube, Damage& damage) {
    const ExtentShard shard = stored(cube, "blob").shard;
    ASSERT_EQ(1u, shard.blobs.size());
    ASSERT_EQ(2u, shard.blobs[0].extents.size());
    Stored object = stored(cube, "small");
    object.shard = {};
    object.shard.extents = {shard.blobs[0].extents[0]};
    std::copy(shard.blobs[0].crc32c.begin(), shard.blobs[0].crc32c.begin() + 8, object.shard.crc32c.begin());
    object.record.size = 8 * kBlockBytes;
    store(damage, "small", object);
  });
  EXPECT_TRUE(check().contains(FindingClass::slot_claimed_twice));
  EXPECT_EQ(Kinds(), repair());
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    for (const bool comes : {true, false}) {
      Transaction txn;
      comes ? txn.clone(kPg, named("blob"), named("snapshot")) : txn.remove(kPg, named("snapshot"));
      store.queue_transaction(pg, std::move(txn));
    }
  });
  EXPECT_EQ(Kinds(), check(true));
  expect_unchanged_but({"small"});
}

TEST_P(RepairTest, ASlotInUseThatIsMarkedFreeIsOwnedAgain) {
  damage([](Cube& cube, Damage& damage) {
    for (const Extent& extent : stored(cube, "small").shard.extents) {
      damage.delta.allocation.freed.push_back(SlotBlocks::all(extent.slot));
    }
  });
  EXPECT_EQ(Kinds({FindingClass::slot_not_owned}), check());
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
  // New data goes elsewhere.
  mounted([](SwimStore& store, ObjectStore::CollectionHandle& pg) {
    for (unsigned i = 0; i < 50; ++i) {
      Transaction txn;
      auto data = bytes(5000, 'x');
      txn.write(kPg, named("new" + std::to_string(i)), 0, 5000, data);
      store.queue_transaction(pg, std::move(txn));
    }
  });
  EXPECT_EQ(Kinds(), check(true));
  EXPECT_EQ(m_before[named("small")], contents()[named("small")]);
}

TEST_P(RepairTest, ALeakedSlotIsFreed) {
  damage([](Cube& cube, Damage& damage) {
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(cube.containers().allocate(4096, &slots).ok());
    damage.delta.allocation.allocated.push_back(SlotBlocks::all(slots.front().address));
  });
  EXPECT_EQ(Kinds({FindingClass::slot_leaked}), check());
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

TEST_P(RepairTest, WrongReferenceCountsAreCountedAnew) {
  for (const std::string& value : {references(3, 1), references(1000, 64), std::string("damaged")}) {
    damage([&](Cube& cube, Damage& damage) {
      std::string shard_bytes;
      ExtentShard shard;
      ASSERT_TRUE(cube.database().get(extent_key(stored(cube, "large").record.nid, 0), &shard_bytes).ok());
      ASSERT_TRUE(decode_extent_shard(shard_bytes, &shard));
      ASSERT_TRUE(shard.extents.front().shared);
      damage.batch.put(slot_reference_key(shard.extents.front().slot, 0), value);
    });
    EXPECT_EQ(Kinds({FindingClass::slot_count_wrong}), check());
    EXPECT_EQ(Kinds(), repair());
    expect_unchanged_but({});
  }
}

TEST_P(RepairTest, WrongSumsOfAPoolAreCountedAnew) {
  damage([](Cube&, Damage& damage) {
    damage.delta.pools[1] = {.allocated = -4096, .stored = 17, .omap = 0, .objects = 3};
    damage.delta.pools[8] = {.allocated = 0, .stored = 0, .omap = 0, .objects = 1};
  });
  EXPECT_EQ(Kinds({FindingClass::usage_wrong}), check());
  EXPECT_EQ(2u, m_result.errors);
  EXPECT_EQ(Kinds(), repair());
  expect_unchanged_but({});
}

TEST_P(RepairTest, SeveralClassesAreRepairedOneAfterTheOther) {
  damage([](Cube& cube, Damage& damage) {
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(cube.containers().allocate(65536, &slots).ok());
    damage.delta.allocation.allocated.push_back(SlotBlocks::all(slots.front().address));
    damage.delta.pools[1].objects = -1;
    damage.batch.put(omap_key(kNobody, "key"), "value");
    damage.batch.put("Obroken", "value");
  });
  // As long as the broken entry is there, it may own the others.
  EXPECT_EQ(Kinds({FindingClass::object_undecodable}), check());
  EXPECT_EQ(Kinds(), repair());
  EXPECT_EQ(2u, m_result.quarantined_entries);
  EXPECT_EQ(1u, m_result.unclear);  // the slot
  expect_unchanged_but({});
}

TEST_P(RepairTest, DataThatDoesNotMatchItsChecksumStaysAndReadsFail) {
  SlotAddress slot;
  damage([&](Cube& cube, Damage&) { slot = stored(cube, "small").shard.extents.front().slot; });
  const std::string name = m_path + "/cubes/0/containers/" + std::to_string(slot_bytes(slot.size_class) / 1024) + "K";
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env->open_file(name, {.direct = false}, &file).ok());
  ASSERT_TRUE(file->write(slot.byte_offset() + 17, "damaged", 7).ok());
  ASSERT_TRUE(file->sync().ok());
  file.reset();

  EXPECT_EQ(Kinds(), check(false));
  EXPECT_EQ(Kinds({FindingClass::data_unreadable}), check(true));
  SwimStore store(g_ceph_context, m_path, m_env);
  ASSERT_TRUE(store.repair({.deep = true}, &m_changes, &m_result).ok());
  EXPECT_TRUE(m_changes.empty());
  EXPECT_EQ(1u, m_result.errors);
  mounted([&](SwimStore& mounted_store, ObjectStore::CollectionHandle& pg) {
    ceph::bufferlist data;
    EXPECT_EQ(-EIO, mounted_store.read(pg, named("small"), 0, 5000, data));
    EXPECT_EQ(5000, mounted_store.read(pg, named("other"), 0, 5000, data));
  });
}

// Of each kind of entry that says in its first byte what form it has. A newer form comes with a feature: without one
// that this program does not know, it is damage.
TEST_P(RepairTest, AnEntryIsNewerOnlyWhereAFeatureIsNotKnown) {
  const auto give = [this](const vtkv::Features::Names& names) {
    Superblock superblock;
    ASSERT_TRUE(Superblock::read(m_env, m_path, &superblock).ok());
    superblock.features.ro_compat = names;
    ASSERT_TRUE(StoreDirectory(m_env, m_path).write_superblock(superblock).ok());
  };
  std::map<std::string, std::string> newer;  // by key
  damage([&](Cube& cube, Damage&) {
    const std::string small = object_key(named("small")), large = object_key(named("large"));
    const std::string shard = extent_key(stored(cube, "large").record.nid, 1);
    const std::string collection = collection_key(kPg);
    for (const std::string& key : {small, large, shard, collection}) {
      ASSERT_TRUE(cube.database().get(key, &newer[key]).ok());
      newer[key].front() = key == collection ? kCollectionRecordVersion + 1
                           : key == shard    ? kExtentRecordVersion + 1
                                             : kOnodeRecordVersion + 1;
    }
    // The shard in the record of an object that has one only.
    std::string& inline_shard = newer[object_key(named("other"))];
    encode_onode(stored(cube, "other").record, {}, &inline_shard);
    ASSERT_EQ('\1', inline_shard[inline_shard.size() - 2]);  // its version, before its number of extents
    inline_shard[inline_shard.size() - 2] = kExtentRecordVersion + 1;
    const auto it = cube.database().new_iterator("S", "T");
    it->seek_to_first();
    ASSERT_TRUE(it->valid());
    newer[std::string(it->key())] = "\3what a newer program writes";
  });
  for (const auto& [key, value] : newer) {
    std::string before;
    damage([&](Cube& cube, Damage& damage) {
      ASSERT_TRUE(cube.database().get(key, &before).ok());
      damage.batch.put(key, value);
    });
    const Kinds known = check();
    EXPECT_FALSE(known.empty() || known.contains(FindingClass::entry_newer)) << describe_object_key(key);
    give({"lines"});
    EXPECT_EQ(Kinds({FindingClass::entry_newer}), check()) << describe_object_key(key);
    EXPECT_EQ(1u, m_result.errors);
    SwimStore store(g_ceph_context, m_path, m_env);
    EXPECT_EQ(vtkv::Status::Code::unsupported, store.repair({.only_copies = true}, &m_changes, &m_result).code());
    EXPECT_TRUE(m_changes.empty()) << m_changes.front().text;
    give({});
    damage([&](Cube& cube, Damage& damage) {
      std::string now;
      ASSERT_TRUE(cube.database().get(key, &now).ok());
      EXPECT_EQ(value, now);
      damage.batch.put(key, before);
    });
    EXPECT_EQ(Kinds(), check());
  }
  expect_unchanged_but({});
}

TEST_P(RepairTest, AStoreThatDoesNotOpenIsAFindingAndStaysAsItIs) {
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env->open_file(m_path + "/superblock", {.direct = false}, &file).ok());
  for (const uint64_t copy : {uint64_t{0}, uint64_t{Superblock::kCopyBytes}}) {
    ASSERT_TRUE(file->write(copy + 20, "damaged", 7).ok());
  }
  file.reset();
  EXPECT_EQ(Kinds({FindingClass::store_does_not_open}), check());
  SwimStore store(g_ceph_context, m_path, m_env);
  ASSERT_TRUE(store.repair({}, &m_changes, &m_result).ok());
  EXPECT_TRUE(m_changes.empty());
  EXPECT_EQ(1u, m_result.errors);
}

INSTANTIATE_TEST_SUITE_P(Hosts, RepairTest, ::testing::Values(Host::simulated, Host::in_passes, Host::real),
                         [](const auto& info) {
                           return std::string(info.param == Host::simulated   ? "Simulated"
                                              : info.param == Host::in_passes ? "InPasses"
                                                                              : "Real");
                         });

}  // namespace swimstore
