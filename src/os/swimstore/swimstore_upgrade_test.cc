// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores of older programs, which stay as they are until an upgrade is asked for, and of newer ones: what this program
// does not know of them it says by name. In a simulated host, and with real files.

#include "swimstore/directory/store_directory.h"
#include "swimstore/format/superblock.h"
#include "swimstore/testing/damage_fixture.h"
#include "swimstore/testing/database_features.h"
#include "swimstore/tool/store_files.h"

namespace swimstore {

namespace {

class UpgradeTest : public DamageFixture {
 protected:
  Superblock superblock() {
    Superblock found;
    EXPECT_TRUE(Superblock::read(m_env, m_path, &found).ok());
    return found;
  }
  void make_version_2() {
    Superblock older = superblock();
    older.version = 2;
    ASSERT_TRUE(StoreDirectory(m_env, m_path).write_superblock(older).ok());
  }
  // As a newer program would have made the store.
  void give(const vtkv::Features& features) {
    Superblock newer = superblock();
    newer.features = known_features();
    newer.features.incompat.erase(kMetadataElsewhereFeature);  // of another layout
    newer.features.add(features);
    ASSERT_TRUE(StoreDirectory(m_env, m_path).write_superblock(newer).ok());
  }
  void give_database(const vtkv::Features& features) { give_database_features(m_env, m_path + "/cubes/0", features); }

  vtkv::Features database() { return database_features(m_env, m_path + "/cubes/0"); }

  int mount() {
    SwimStore store(g_ceph_context, m_path, m_env);
    const int r = store.mount();
    return r < 0 ? r : store.umount();
  }
  // Whatever changes a store.
  std::vector<vtkv::Status> changes() {
    SwimStore store(g_ceph_context, m_path, m_env);
    uint64_t entries = 0, left = 0;
    Superblock before, after;
    std::vector<vtkv::Status> all;
    all.push_back(store.try_mount());
    all.push_back(store.repair({}, &m_changes, &m_result));
    all.push_back(store.put_back(&entries, &left, &m_changes, &m_result));
    all.push_back(store.forget_quarantined(&entries));
    return all;
  }
  vtkv::Status look(StoreFiles::Purpose purpose, uint64_t* objects) {
    std::unique_ptr<StoreFiles> files;
    VTKV_RETURN_IF_ERROR(StoreFiles::open(m_env, m_path, 0, purpose, &files));
    VTKV_RETURN_IF_ERROR(files->open_cube());
    *objects = 0;
    return files->for_each_object([&](const StoredObject& object) {
      *objects += object.decodable;
      return vtkv::Status();
    });
  }
  // Every file below this directory.
  std::map<std::string, std::string> disk(const std::string& directory) {
    std::map<std::string, std::string> all;
    std::vector<std::string> names, ignored;
    EXPECT_TRUE(m_env->list_directory(directory, &names).ok());
    for (const std::string& name : names) {
      const std::string path = directory + "/" + name;
      if (m_env->list_directory(path, &ignored).ok()) {
        all.merge(disk(path));
        continue;
      }
      std::unique_ptr<vtkv::File> file;
      uint64_t size = 0;
      EXPECT_TRUE(m_env->open_file(path, {.read_only = true, .direct = false}, &file).ok() && file->size(&size).ok());
      all[path].resize(size);
      EXPECT_TRUE(size == 0 || file->read(0, size, all[path].data()).ok());
    }
    return all;
  }
};

bool says(const vtkv::Status& status, const std::string& text) {
  return status.code() == vtkv::Status::Code::unsupported && status.message().find(text) != std::string_view::npos;
}

}  // namespace

TEST_P(UpgradeTest, AStoreOfVersion2IsServedAndStaysSo) {
  make_version_2();
  const std::string before = superblock().encode();
  EXPECT_EQ(0, mount());
  EXPECT_EQ(Kinds(), check(true));
  EXPECT_EQ(before, superblock().encode());
  EXPECT_EQ(2u, superblock().version);
  // A damaged copy is written anew, as it was.
  std::unique_ptr<vtkv::File> file;
  ASSERT_TRUE(m_env->open_file(m_path + "/superblock", {.direct = false}, &file).ok());
  ASSERT_TRUE(file->write(20, "damaged", 7).ok());
  file.reset();
  EXPECT_EQ(0, mount());
  EXPECT_TRUE(superblock().is_whole(m_env, m_path));
  EXPECT_EQ(before, superblock().encode());
  expect_unchanged_but({});
}

TEST_P(UpgradeTest, AnUpgradeIsMadeWhenItIsAskedFor) {
  make_version_2();
  give_database({});
  SwimStore store(g_ceph_context, m_path, m_env);
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(store.upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(changed);
  EXPECT_EQ(2u, before.version);
  EXPECT_EQ(kSuperblockVersion, after.version);
  EXPECT_EQ(after.encode(), superblock().encode());
  EXPECT_TRUE(database().incompat.contains(vtkv::kCompressedBlocksFeature));
  ASSERT_TRUE(store.upgrade(&before, &after, &changed).ok());
  EXPECT_FALSE(changed);
  EXPECT_EQ(before.encode(), after.encode());
  EXPECT_EQ(Kinds(), check(true));
  expect_unchanged_but({});
}

TEST_P(UpgradeTest, AnUnknownCompatFeatureIsNobodysConcern) {
  const vtkv::Features features{.compat = {"dots"}, .ro_compat = {}, .incompat = {}};
  give(features);
  give_database(features);
  EXPECT_EQ(0, mount());
  EXPECT_EQ(Kinds(), check(true));
  SwimStore store(g_ceph_context, m_path, m_env);
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(store.upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(superblock().features.compat.contains("dots"));
  EXPECT_TRUE(database().compat.contains("dots"));
  expect_unchanged_but({});
}

TEST_P(UpgradeTest, AnUpgradeOfTheDatabaseAloneIsOneToo) {
  give_database({});
  const std::string superblock_before = superblock().encode();
  SwimStore store(g_ceph_context, m_path, m_env);
  std::map<std::string, std::string> metadata;
  ASSERT_EQ(0, store.mount());
  store.collect_metadata(&metadata);
  EXPECT_EQ("1", metadata["swimstore_upgradable"]);
  ASSERT_EQ(0, store.umount());
  Superblock before, after;
  bool changed = false;
  ASSERT_TRUE(store.upgrade(&before, &after, &changed).ok());
  EXPECT_TRUE(changed);
  EXPECT_EQ(superblock_before, superblock().encode());
  EXPECT_TRUE(database().incompat.contains(vtkv::kCompressedBlocksFeature));
  ASSERT_EQ(0, store.mount());
  store.collect_metadata(&metadata);
  EXPECT_EQ("0", metadata["swimstore_upgradable"]);
  ASSERT_EQ(0, store.umount());
  EXPECT_EQ(Kinds(), check(true));
}

// Where the option is off, the database stays as it is, too: older programs go on with it.
TEST_P(UpgradeTest, AnUpgradeGivesADatabaseNoFeatureThatItsOptionDeclines) {
  give_database({});
  use_small_stores(g_ceph_context, {{"swimstore_compress_metadata", "false"}});
  SwimStore store(g_ceph_context, m_path, m_env);
  Superblock before, after;
  bool changed = true;
  ASSERT_TRUE(store.upgrade(&before, &after, &changed).ok());
  EXPECT_FALSE(changed);
  EXPECT_TRUE(database().empty());
  use_small_stores(g_ceph_context);
}

// In the superblock or in the database: it is read, by a check too, and nothing on disk changes.
TEST_P(UpgradeTest, WithAnUnknownReadOnlyFeatureItIsReadAndNotWritten) {
  const vtkv::Features features{.compat = {}, .ro_compat = {"lines"}, .incompat = {}};
  for (const bool in_database : {false, true}) {
    in_database ? give_database(features) : give(features);
    const auto before = disk(m_path);
    EXPECT_EQ(-EOPNOTSUPP, mount());
    for (const vtkv::Status& status : changes()) {
      EXPECT_PRED2(says, status,
                   in_database ? "/manifest: a newer program wrote here" : "/superblock: a newer program");
      EXPECT_PRED2(says, status, ": lines. ");
    }
    EXPECT_EQ(Kinds(), check(true));
    EXPECT_EQ(5u, m_result.objects);
    uint64_t objects = 0;
    EXPECT_TRUE(look(StoreFiles::Purpose::look, &objects).ok());
    EXPECT_EQ(5u, objects);
    EXPECT_TRUE(before == disk(m_path));
    give({});
    make_version_2();
    SwimStore store(g_ceph_context, m_path, m_env);
    Superblock older, newer;
    bool changed = false;
    const vtkv::Status upgraded = store.upgrade(&older, &newer, &changed);
    EXPECT_EQ(!in_database, upgraded.ok());
    EXPECT_TRUE(upgraded.ok() || says(upgraded, "/manifest: a newer program wrote here"));
    EXPECT_EQ(in_database ? 2u : kSuperblockVersion, superblock().version);
  }
}

// What recovery makes and gives back otherwise it does without.
TEST_P(UpgradeTest, WhatIsOnlyReadNeedsNoQuarantineAndNoReserve) {
  give({.compat = {}, .ro_compat = {"lines"}, .incompat = {}});
  ASSERT_TRUE(m_env->remove_file(m_path + "/cubes/0/containers/quarantine").ok());
  const auto before = disk(m_path);
  EXPECT_EQ(Kinds(), check(true));
  EXPECT_TRUE(before == disk(m_path));
}

TEST_P(UpgradeTest, WithAnUnknownIncompatFeatureItIsNotRead) {
  const vtkv::Features features{.compat = {"dots"}, .ro_compat = {"lines"}, .incompat = {"planes"}};
  for (const bool in_database : {false, true}) {
    in_database ? give_database(features) : give(features);
    const auto before = disk(m_path);
    std::vector<vtkv::Status> all = changes();
    SwimStore store(g_ceph_context, m_path, m_env);
    all.push_back(store.check({}, &m_result));
    uint64_t objects = 0;
    all.push_back(look(StoreFiles::Purpose::look, &objects));
    all.push_back(look(StoreFiles::Purpose::salvage, &objects));
    for (const vtkv::Status& status : all) {
      EXPECT_PRED2(says, status, "cannot read without: planes; use that program");
    }
    EXPECT_TRUE(before == disk(m_path));
    give({});
  }
}

// Where nothing can be done without the superblock, a newer one is not done without either.
TEST_P(UpgradeTest, ANewerSuperblockIsNotSalvagedAsADamagedOne) {
  Superblock newer = superblock();
  newer.version = kSuperblockVersion + 1;
  ASSERT_TRUE(StoreDirectory(m_env, m_path).write_superblock(newer).ok());
  uint64_t objects = 0;
  EXPECT_PRED2(says, look(StoreFiles::Purpose::salvage, &objects), "format version 4, this program knows");
  EXPECT_PRED2(says, changes().front(), "format version 4, this program knows");
}

INSTANTIATE_TEST_SUITE_P(Hosts, UpgradeTest, ::testing::Values(Host::simulated, Host::real), [](const auto& info) {
  return info.param == Host::simulated ? std::string("Simulated") : std::string("Real");
});

}  // namespace swimstore
