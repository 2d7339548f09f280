// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks of the tree destroyed below a mounted store: whatever needs them says so and ends an OSD, before the caller is
// told anything. Nothing says "no such object", or that a list ends where the reading did.

#include "swimstore/ops/metadata_failure.h"

#include <cstring>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/Formatter.h"
#include "common/code_environment.h"
#include "swimstore/omap/omap_iterator.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "vtkv/span/block_format.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;
using ::testing::AllOf;
using ::testing::HasSubstr;
using vtkv::BlockKind;

const std::string kTree = "/store/cubes/0/tree";

// What a block that was overwritten holds, or one that the disk returns nothing of.
constexpr char kFlippedBits = 0x55;

struct Use {
  const char* name;
  const char* what;  // cannot be read, the onode being in memory where it is not this
  std::function<void()> call;
};

constexpr const char* kObject = "metadata cannot be read, object ";
constexpr const char* kExtents = "the extents of object ";
constexpr const char* kOmap = "the omap of object ";
constexpr const char* kList = "the list of collection ";
constexpr const char* kReferences = "the references of slots";

bool needs_onode_alone(const Use& use) { return use.what == kObject || use.what == kList; }

// Names the block, its file, and the way out.
auto is_clear() {
  return AllOf(HasSubstr("metadata cannot be read"), HasSubstr("cannot read 4096 bytes at "), HasSubstr(kTree),
               HasSubstr("ceph-swimstore-tool fsck /store"));
}

class MetadataFailureTest : public SimStoreFixture {
 protected:
  // No block of the tree stays in memory.
  MetadataFailureTest()
      : SimStoreFixture({{"swimstore_cache_kv_ratio", "0"}, {"objectstore_debug_throw_on_failed_txc", "true"}}) {}

  void SetUp() override {
    SimStoreFixture::SetUp();
    Transaction txn;
    for (unsigned i = 0; i < 200; ++i) {
      write(txn, named("small" + std::to_string(i)), 5000);
    }
    write(txn, m_large, 3 << 20);
    std::map<std::string, ceph::bufferlist> values;
    for (unsigned i = 0; i < kOmapKeys; ++i) {
      values["key" + std::to_string(10'000 + i)].append(std::string(100, 'v'));
    }
    txn.omap_setkeys(kPg, m_large, values);
    ceph::bufferlist header;
    header.append("header");
    txn.omap_setheader(kPg, m_large, header);
    ceph::bufferlist attribute;
    attribute.append("value");
    txn.setattr(kPg, m_large, "attribute", attribute);
    for (const ghobject_t& oid : m_clones) {
      txn.clone(kPg, m_large, oid);  // its slots are shared: their references are counted in the tree
    }
    ASSERT_EQ(0, m_store->queue_transaction(m_pg, std::move(txn)));
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->compact());
  }

  void TearDown() override {
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    SimStoreFixture::TearDown();
  }

  void remount() {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    m_store->set_metadata_failure_handler([this](const std::string& message) { m_messages.push_back(message); });
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
    ASSERT_TRUE(m_pg);
  }
  void remount_as_of(code_environment_t who) {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    g_code_env = who;
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->open_collection(kPg);
    ASSERT_TRUE(m_pg);
  }

  // Every block of the kind, wherever the tree has ever put one. The number of them.
  unsigned destroy(BlockKind kind) {
    std::unique_ptr<vtkv::File> file;
    EXPECT_TRUE(m_env.open_file(kTree, {.direct = false}, &file).ok());
    uint64_t size = 0;
    EXPECT_TRUE(file->size(&size).ok());
    unsigned destroyed = 0;
    for (uint64_t offset = 0; offset + vtkv::kUnitBytes <= size; offset += vtkv::kUnitBytes) {
      vtkv::block_header_t header;
      char bytes[sizeof(header)];
      EXPECT_TRUE(file->read(offset, sizeof(header), bytes).ok());
      std::memcpy(&header, bytes, sizeof(header));
      if (header.magic == vtkv::kBlockMagic && header.kind == static_cast<uint8_t>(kind)) {
        m_env.flip_bits(kTree, offset + sizeof(header), kFlippedBits);
        ++destroyed;
      }
    }
    return destroyed;
  }

  void write(Transaction& txn, const ghobject_t& oid, uint64_t bytes) {
    ceph::bufferlist data;
    data.append(std::string(bytes, 'x'));
    txn.write(kPg, oid, 0, bytes, data);
  }
  // Queued; what it throws because it cannot be planned is the test's own wish.
  void queue(const std::function<void(Transaction&)>& fill) {
    Transaction txn;
    fill(txn);
    try {
      m_store->queue_transaction(m_pg, std::move(txn));
    } catch (int r) {
      EXPECT_EQ(-EIO, r);
    }
  }
  void iterate(const std::function<void(std::unique_ptr<OmapIterator>&)>& move) {
    if (auto iterator = m_store->omap_iterator(m_pg, m_large)) {
      move(iterator);
    }
  }

  void expect_message(const Use& use) {
    SCOPED_TRACE(use.name);
    m_messages.clear();
    use.call();
    ASSERT_EQ(1u, m_messages.size());
    EXPECT_THAT(m_messages[0], AllOf(is_clear(), HasSubstr(use.what)));
  }

  std::vector<Use> reads();
  std::vector<Use> omap_reads();
  std::vector<Use> writes();
  std::vector<Use> all_uses() {
    std::vector<Use> all = reads();
    for (auto& use : omap_reads()) {
      all.push_back(use);
    }
    for (auto& use : writes()) {
      all.push_back(use);
    }
    return all;
  }

  static constexpr unsigned kOmapKeys = 1000;
  const ghobject_t m_large = named("large"), m_small = named("small7");
  // One for each use that a transaction taken back would leave without its onode in memory.
  const std::vector<ghobject_t> m_clones{named("clone0"), named("clone1"), named("clone2"),
                                         named("clone3"), named("clone4"), named("clone5")};
  std::vector<std::string> m_messages;

 private:
  // What the calls fill.
  struct stat m_stat{};
  ceph::bufferlist m_bytes;
  ceph::bufferptr m_value;
  std::map<std::string, ceph::bufferptr, std::less<>> m_attributes;
  std::map<std::string, ceph::bufferlist> m_values;
  std::map<uint64_t, uint64_t> m_extents;
  std::set<std::string> m_keys;
  std::vector<ghobject_t> m_objects;
};

std::vector<Use> MetadataFailureTest::reads() {
  return {
      {"exists", kObject, [this] { m_store->exists(m_pg, m_large); }},
      {"stat", kObject, [this] { m_store->stat(m_pg, m_large, &m_stat); }},
      {"getattr", kObject, [this] { m_store->getattr(m_pg, m_large, "attribute", m_value); }},
      {"getattrs", kObject, [this] { m_store->getattrs(m_pg, m_large, m_attributes); }},
      {"read of a small object", kObject, [this] { m_store->read(m_pg, m_small, 0, 10, m_bytes); }},
      {"read", kExtents, [this] { m_store->read(m_pg, m_large, 1 << 20, 4096, m_bytes); }},
      {"readv", kExtents,
       [this] {
         interval_set<uint64_t> wanted;
         wanted.insert(1 << 20, 4096);
         m_store->readv(m_pg, m_large, wanted, m_bytes);
       }},
      {"fiemap", kExtents, [this] { m_store->fiemap(m_pg, m_large, 0, 3 << 20, m_extents); }},
      {"dump_onode", kExtents,
       [this] {
         ceph::JSONFormatter formatter;
         m_store->dump_onode(m_pg, m_large, "onode", &formatter);
       }},
      {"collection_list", kList,
       [this] { m_store->collection_list(m_pg, ghobject_t(), ghobject_t::get_max(), 1000, &m_objects, nullptr); }},
      {"collection_empty", kList,
       [this] {
         bool empty = false;
         m_store->collection_empty(m_pg, &empty);
       }},
  };
}

std::vector<Use> MetadataFailureTest::omap_reads() {
  return {
      {"omap_get", kOmap, [this] { m_store->omap_get(m_pg, m_large, &m_bytes, &m_values); }},
      {"omap_get_header", kOmap, [this] { m_store->omap_get_header(m_pg, m_large, &m_bytes); }},
      {"omap_get_keys", kOmap, [this] { m_store->omap_get_keys(m_pg, m_large, &m_keys); }},
      {"omap_get_values", kOmap, [this] { m_store->omap_get_values(m_pg, m_large, {"key10500"}, &m_values); }},
      {"omap_check_keys", kOmap, [this] { m_store->omap_check_keys(m_pg, m_large, {"key10500"}, &m_keys); }},
      {"an omap iterator", kObject, [this] { m_store->omap_iterator(m_pg, m_large); }},
      {"its first entry", kOmap, [this] { iterate([](auto& iterator) { EXPECT_FALSE(iterator->valid()); }); }},
      {"seek_to_first", kOmap, [this] { iterate([](auto& iterator) { EXPECT_EQ(-EIO, iterator->seek_to_first()); }); }},
      {"lower_bound", kOmap, [this] { iterate([](auto& it) { EXPECT_EQ(-EIO, it->lower_bound("key10500")); }); }},
      {"upper_bound", kOmap, [this] { iterate([](auto& it) { EXPECT_EQ(-EIO, it->upper_bound("key10500")); }); }},
  };
}

std::vector<Use> MetadataFailureTest::writes() {
  return {
      {"write to a small object", kObject, [this] { queue([this](auto& txn) { write(txn, m_small, 100); }); }},
      {"touch", kObject, [this] { queue([this](auto& txn) { txn.touch(kPg, m_small); }); }},
      {"setattr", kObject,
       [this] {
         ceph::bufferlist value;
         value.append("new");
         queue([&](auto& txn) { txn.setattr(kPg, m_large, "attribute", value); });
       }},
      {"omap_setkeys", kObject,
       [this] {
         queue([&](auto& txn) { txn.omap_setkeys(kPg, m_large, std::map<std::string, ceph::bufferlist>()); });
       }},
      {"remove of a collection", kList, [this] { queue([](auto& txn) { txn.remove_collection(kPg); }); }},
      {"write", kExtents, [this] { queue([this](auto& txn) { write(txn, m_clones[0], 4096); }); }},
      {"zero", kExtents, [this] { queue([this](auto& txn) { txn.zero(kPg, m_clones[1], 0, 1 << 20); }); }},
      {"truncate", kExtents, [this] { queue([this](auto& txn) { txn.truncate(kPg, m_clones[2], 5000); }); }},
      {"remove", kExtents, [this] { queue([this](auto& txn) { txn.remove(kPg, m_clones[3]); }); }},
      {"clone", kExtents, [this] { queue([this](auto& txn) { txn.clone(kPg, m_clones[4], named("another")); }); }},
      {"write to shared slots", kReferences, [this] { queue([this](auto& txn) { write(txn, m_clones[5], 4096); }); }},
  };
}

}  // namespace

class MetadataFailureOf : public MetadataFailureTest, public ::testing::WithParamInterface<BlockKind> {};

TEST_P(MetadataFailureOf, WhoeverNeedsAnObjectSaysSo) {
  remount();
  ASSERT_LT(0u, destroy(GetParam()));
  for (const Use& use : all_uses()) {
    if (needs_onode_alone(use)) {
      expect_message(use);
    }
  }
}

TEST_P(MetadataFailureOf, WhoeverNeedsMoreThanAnOnodeInMemorySaysSo) {
  remount();
  struct stat st;
  ASSERT_EQ(0, m_store->stat(m_pg, m_large, &st));
  for (const ghobject_t& oid : m_clones) {
    ASSERT_EQ(0, m_store->stat(m_pg, oid, &st));
  }
  std::map<uint64_t, uint64_t> extents;
  ASSERT_EQ(0, m_store->fiemap(m_pg, m_clones[5], 0, 3 << 20, extents));
  ASSERT_LT(0u, destroy(GetParam()));
  for (const Use& use : all_uses()) {
    if (!needs_onode_alone(use)) {
      expect_message(use);
    }
  }
}

TEST_P(MetadataFailureOf, AnIterationThatBeganWellDoesNotEndEarly) {
  remount();
  auto iterator = m_store->omap_iterator(m_pg, m_large);
  ASSERT_TRUE(iterator->valid());
  ASSERT_LT(0u, destroy(GetParam()));
  unsigned entries = 0;
  for (; iterator->valid(); iterator->next()) {
    ++entries;
  }
  // An index that was read before serves the whole of it.
  EXPECT_EQ(entries < kOmapKeys ? 1u : 0u, m_messages.size());
  EXPECT_TRUE(GetParam() == BlockKind::index || entries < kOmapKeys);
}

INSTANTIATE_TEST_SUITE_P(Blocks, MetadataFailureOf, ::testing::Values(BlockKind::entries, BlockKind::index),
                         [](const auto& info) { return info.param == BlockKind::entries ? "entries" : "index"; });

TEST_F(MetadataFailureTest, AReadErrorOfTheHostSaysSo) {
  remount();
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  ceph::bufferptr value;
  EXPECT_EQ(-EIO, m_store->getattr(m_pg, m_large, "attribute", value));
  m_env.clear_faults();
  ASSERT_EQ(1u, m_messages.size());
  EXPECT_THAT(m_messages[0], AllOf(is_clear(), HasSubstr("injected")));
}

// An object that is not there, and data that cannot be read: both are answers.
TEST_F(MetadataFailureTest, WhatAnOsdUnderstandsIsNoFailure) {
  remount();
  ceph::bufferptr value;
  ceph::bufferlist data;
  EXPECT_EQ(-ENOENT, m_store->getattr(m_pg, named("nobody"), "attribute", value));
  EXPECT_EQ(-ENODATA, m_store->getattr(m_pg, m_large, "nothing", value));
  struct stat st;
  ASSERT_EQ(0, m_store->stat(m_pg, m_small, &st));
  m_env.fail_nth(vtkv::SimCall::read, 1, vtkv::Status::from_errno(EIO, "injected"), true);
  EXPECT_EQ(-EIO, m_store->read(m_pg, m_small, 0, 100, data));
  m_env.clear_faults();
  EXPECT_TRUE(m_messages.empty());
}

TEST_F(MetadataFailureTest, AnOsdEnds) {
  remount_as_of(CODE_ENVIRONMENT_DAEMON);
  destroy(BlockKind::entries);
  ceph::bufferptr value;
  EXPECT_DEATH(m_store->getattr(m_pg, m_large, "attribute", value), "metadata cannot be read, object .*large.*/tree");
  EXPECT_DEATH(queue([this](auto& txn) { write(txn, m_small, 100); }), "metadata cannot be read, object .*small7");
}

TEST_F(MetadataFailureTest, AToolGoesOnButForAnIteration) {
  remount_as_of(CODE_ENVIRONMENT_UTILITY);
  struct stat st;
  ASSERT_EQ(0, m_store->stat(m_pg, m_large, &st));
  destroy(BlockKind::entries);
  ceph::bufferptr value;
  EXPECT_EQ(-EIO, m_store->getattr(m_pg, m_small, "attribute", value));
  EXPECT_EXIT(m_store->omap_iterator(m_pg, m_large)->valid(), ::testing::ExitedWithCode(1),
              "omap of object .*large.* cannot be read to its end.*/tree");
}

// Both are asked of an OSD, too: one before it serves, the other while it does.
TEST_F(MetadataFailureTest, AnOsdThatChecksItsStoreGoesOn) {
  remount_as_of(CODE_ENVIRONMENT_DAEMON);
  destroy(BlockKind::entries);
  std::string printed;
  EXPECT_EQ(0, admin_command(R"("prefix": "swimstore fsck", "deep": true)", &printed));
  for (unsigned i = 0; i < 1000 && printed.find("\"done\"") == std::string::npos; ++i) {
    m_env.advance(std::chrono::milliseconds(100));
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore fsck status")", &printed));
  }
  EXPECT_THAT(printed, AllOf(HasSubstr("\"done\""), HasSubstr("metadata_unreadable")));
  osd_alert_list_t alerts;
  store_statfs_t statfs;
  ASSERT_EQ(0, m_store->statfs(&statfs, &alerts));
  EXPECT_THAT(alerts["SWIMSTORE_FSCK_FINDINGS"], HasSubstr("run 'ceph-swimstore-tool fsck', then 'repair'"));
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  EXPECT_NE(0, m_store->fsck(true));
  g_code_env = CODE_ENVIRONMENT_UTILITY;
  m_store = std::make_unique<SwimStore>(g_ceph_context, "/another", &m_env);
  ASSERT_TRUE(m_env.create_directory("/another").ok());
  ASSERT_EQ(0, m_store->mkfs());
  ASSERT_EQ(0, m_store->mount());
}

}  // namespace swimstore
