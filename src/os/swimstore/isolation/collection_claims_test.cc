// SPDX-License-Identifier: LGPL-2.1-or-later
// What `export` takes of a store in which a collection lies in two cubes: a log that is cut short brings back what was
// there before a move, or takes away what came behind it.

#include "swimstore/isolation/collection_claims.h"

#include <filesystem>
#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/format/unowned_range.h"
#include "swimstore/testing/damage_fixture.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/tool/object_transfer.h"
#include "swimstore/tool/store_files.h"

namespace swimstore {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kNew = 2, kOld = 1;  // cubes

TEST(KeyRanges, WithoutAPartTwoAreLeft) {
  const std::vector<KeyRange> ranges{{"b", "d"}, {"f", "h"}};
  EXPECT_EQ(without(ranges, {{"a", "b"}}), ranges);
  EXPECT_EQ(without(ranges, {{"c", "g"}}), (std::vector<KeyRange>{{"b", "c"}, {"g", "h"}}));
  EXPECT_EQ(without(ranges, {{"bb", "c"}}), (std::vector<KeyRange>{{"b", "bb"}, {"c", "d"}, {"f", "h"}}));
  EXPECT_EQ(without(ranges, {{"a", "z"}}), std::vector<KeyRange>());
}

// The group lies in cube 2, with an object that was changed since a move.
class CollectionClaimsTest : public SimStoreFixture {
 protected:
  CollectionClaimsTest() : SimStoreFixture({{"swimstore_cubes", "2"}, {"swimstore_log_segment_size", "262144"}}) {}
  ~CollectionClaimsTest() override { use_small_stores(g_ceph_context); }

  void SetUp() override {
    SimStoreFixture::SetUp();
    ObjectStore::CollectionHandle group = m_store->create_new_collection(kGroup);
    ObjectStore::Transaction txn;
    txn.create_collection(kGroup, 1);
    txn.touch(kGroup, object("changed"));
    auto value = bytes(3, 'n');
    txn.setattr(kGroup, object("changed"), "attribute", value);
    m_store->queue_transaction(group, std::move(txn));
    group.reset();
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
  }
  void TearDown() override {}

  static ghobject_t object(const std::string& name) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 1, 2, ""));
  }

  // What a tree says, changed at will.
  void change(unsigned cube, const std::function<void(vtkv::DB&, vtkv::WriteBatch*)>& with) {
    Damage damage;  // until callbacks have ended, with the cubes
    std::unique_ptr<CubeSet> cubes;
    ASSERT_TRUE(open_cubes_of(g_ceph_context, &m_env, kPath, {}, &cubes).ok());
    with((*cubes)[cube].database(), &damage.batch);
    if (!damage.batch.empty()) {
      (*cubes)[cube].submit(&damage);
      ASSERT_TRUE((*cubes)[cube].database().wait_durable(damage.last_sequence).ok());
    }
  }
  CollectionRecord record() {
    CollectionRecord found;
    change(kNew, [&](vtkv::DB& database, vtkv::WriteBatch*) {
      std::string value;
      EXPECT_TRUE(database.get(collection_key(kGroup), &value).ok());
      EXPECT_TRUE(decode_collection(value, &found));
    });
    return found;
  }
  static void put_object(const std::string& name, const std::string& value, vtkv::WriteBatch* batch) {
    OnodeRecord onode;
    onode.nid = kNobody;
    onode.set(OnodeRecord::shard_inline, true);
    onode.attrs.emplace("attribute", ceph::bufferptr(value.data(), value.size()));
    std::string encoded;
    encode_onode(onode, {}, &encoded);
    batch->put(object_key(object(name)), encoded);
  }

  vtkv::Status export_to(std::ostream* out, std::optional<uint32_t> cube, const std::string& only = "") {
    std::unique_ptr<StoreFiles> files;
    m_exported = {};
    VTKV_RETURN_IF_ERROR(StoreFiles::open(&m_env, kPath, cube, StoreFiles::Purpose::salvage, &files));
    return export_objects(*files, only, "archive", out, &m_exported);
  }
  // The attributes of the group's objects when the archive was imported into a store that may have the group.
  std::map<std::string, std::string> exported(std::optional<uint32_t> cube = {}, bool with_doubtful = false,
                                              bool group_is_made = false) {
    std::stringstream archive;
    const vtkv::Status status = export_to(&archive, cube);
    EXPECT_TRUE(status.ok()) << status.to_string();
    const std::string path = fs::current_path() / "copy";  // whose threads go on while the import waits for them
    fs::create_directory(path);
    SwimStore copy(g_ceph_context, path);
    EXPECT_EQ(0, copy.mkfs());
    EXPECT_EQ(0, copy.mount());
    TransferResult imported;
    if (group_is_made) {
      ObjectStore::Transaction txn;
      ObjectStore::CollectionHandle group = copy.create_new_collection(kGroup);
      txn.create_collection(kGroup, 1);
      copy.queue_transaction(group, std::move(txn));
    }
    EXPECT_TRUE(import_objects(copy, "archive", &archive, with_doubtful, &imported).ok());
    std::map<std::string, std::string> found;
    if (ObjectStore::CollectionHandle group = copy.open_collection(kGroup)) {
      std::vector<ghobject_t> objects;
      ghobject_t next;
      EXPECT_EQ(0, copy.collection_list(group, ghobject_t(), ghobject_t::get_max(), 100, &objects, &next));
      for (const ghobject_t& oid : objects) {
        ceph::bufferptr value;
        EXPECT_EQ(0, copy.getattr(group, oid, "attribute", value));
        found[oid.hobj.oid.name] = std::string(value.c_str(), value.length());
      }
    }
    EXPECT_EQ(0, copy.umount());
    fs::remove_all(path);
    return found;
  }

  static inline const coll_t kGroup{spg_t(pg_t(1, 2))};
  static inline const std::map<std::string, std::string> kChanged{{"changed", "nop"}};
  TransferResult m_exported;
};

TEST_F(CollectionClaimsTest, WhatTheRecordWithTheGreaterGenerationSaysComesFirst) {
  const CollectionRecord now = record();
  ASSERT_EQ(now.home(), kNew);
  change(kOld, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->put(collection_key(kGroup), encode_collection(CollectionRecord(1, 1, kOld, now.generation - 1)));
    put_object("changed", "old", batch);
    put_object("removed", "old", batch);
  });
  EXPECT_EQ(exported(), kChanged);
  EXPECT_EQ(m_exported.doubtful, 2u);
  EXPECT_THAT(m_exported.omitted, Contains(HasSubstr("the objects of collection 2.1_head in cube 1 are doubtful")));
  EXPECT_EQ(exported(kNew), kChanged);
  EXPECT_EQ(m_exported.doubtful, 0u);
  EXPECT_EQ(exported(kOld), (std::map<std::string, std::string>()));
  // What cannot be read where it should be may be wanted from where it was.
  EXPECT_EQ(exported(kOld, true, true), (std::map<std::string, std::string>{{"changed", "old"}, {"removed", "old"}}));
  EXPECT_EQ(exported({}, true), (std::map<std::string, std::string>{{"changed", "nop"}, {"removed", "old"}}));
  std::ostringstream one;
  EXPECT_TRUE(export_to(&one, kOld, kGroup.to_str()).ok());
  EXPECT_EQ(m_exported.doubtful, 2u);
}

// A child that was merged: its old record says it has a part of what the parent has.
TEST_F(CollectionClaimsTest, WhatANewerCollectionCoversIsDoubtful) {
  const CollectionRecord now = record();
  const coll_t child(spg_t(pg_t(3, 2)));
  change(kOld, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->put(collection_key(child), encode_collection(CollectionRecord(3, 2, kOld, now.generation - 1)));
  });
  EXPECT_EQ(exported(), kChanged);
  EXPECT_THAT(m_exported.omitted, Contains(HasSubstr("the objects of collection 2.3_head in cube 1 are doubtful")));
}

// Of a move whose mark in the cube that was left, or is not reached yet, cannot be read.
TEST_F(CollectionClaimsTest, WhatLiesWhereAnotherCubeHasTheRecordIsDoubtful) {
  change(kOld, [&](vtkv::DB&, vtkv::WriteBatch* batch) { put_object("changed", "old", batch); });
  EXPECT_EQ(exported(), kChanged);
  EXPECT_THAT(m_exported.omitted, Contains(HasSubstr("collection 2.1_head, which they are of, lies in cube 2")));
}

TEST_F(CollectionClaimsTest, WhatAMoveHasLeftIsPassedOver) {
  change(kOld, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->put(unowned_range_key(kGroup), encode_unowned_range({.bits = 1}));
    put_object("changed", "old", batch);
  });
  EXPECT_EQ(exported(), kChanged);
  EXPECT_THAT(m_exported.omitted, Contains(HasSubstr("which a move that was cut short has left")));
}

// The record would have come behind the copy.
TEST_F(CollectionClaimsTest, ACopyWhoseRecordIsLostIsExportedAsDoubtful) {
  change(kNew, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->remove(collection_key(kGroup));
    batch->put(unowned_range_key(kGroup), encode_unowned_range({.bits = 1}));
  });
  EXPECT_EQ(exported({}, true, true), kChanged);
  EXPECT_EQ(m_exported.doubtful, 1u);
  EXPECT_THAT(m_exported.omitted,
              Contains(HasSubstr("has a record of collection 2.1_head, which may have been removed")));
  EXPECT_THAT(m_exported.omitted, Not(Contains(HasSubstr("lies in another cube"))));
}

// And the copy that was moved from is there as well: what is newer comes first, so that an import keeps that.
TEST_F(CollectionClaimsTest, WhatAMoveHasLeftComesBehindACopyWhoseRecordIsLost) {
  change(kNew, [&](vtkv::DB&, vtkv::WriteBatch* batch) { batch->put(collection_key(kGroup), "no record"); });
  change(kOld, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->put(unowned_range_key(kGroup), encode_unowned_range({.bits = 1}));
    put_object("changed", "old", batch);
  });
  EXPECT_EQ(exported({}, true, true), kChanged);
  EXPECT_EQ(m_exported.doubtful, 1u);
}

// A block of the tree with the tombstone of a mark is lost, so that the mark is back.
TEST_F(CollectionClaimsTest, AMarkBesideTheCubesOwnRecordDoubtsNothing) {
  change(kNew, [&](vtkv::DB&, vtkv::WriteBatch* batch) {
    batch->put(unowned_range_key(kGroup), encode_unowned_range({.bits = 1}));
  });
  EXPECT_EQ(exported(), kChanged);
  EXPECT_EQ(m_exported.doubtful, 0u);
}

}  // namespace
}  // namespace swimstore
