// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores whose log and tree lie on another file system than their data, in the simulated host.
// tidy: long because where they are, and how they get there, is tried with the same two stores

#include <gtest/gtest.h>

#include <algorithm>

#include "swimstore/directory/store_directory.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/tool/store_files.h"
#include "vtkv/db/ownership.h"
#include "vtkv/env/small_file.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {

namespace {

using vtkv::SimCall;
using vtkv::Status;

constexpr const char* kPath = "/osd";
constexpr const char* kMetadata = "/other/metadata";

class MetadataDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { prepare(); }
  void TearDown() override { use_small_stores(g_ceph_context); }

  void prepare(const char* cubes = "1") {
    use_small_stores(g_ceph_context, {{"swimstore_metadata_path", kMetadata}, {"swimstore_cubes", cubes}});
    m_env = std::make_unique<vtkv::SimEnv>();
    ASSERT_TRUE(m_env->create_directory(kPath).ok());
    ASSERT_TRUE(m_env->create_directory(vtkv::kSimOtherFileSystem).ok());
  }
  std::unique_ptr<SwimStore> store(const char* path = kPath) {
    return std::make_unique<SwimStore>(g_ceph_context, path, m_env.get());
  }
  Status make(const char* path = kPath) { return store(path)->make(); }
  void create(const std::string& path) {
    std::unique_ptr<vtkv::File> file;
    ASSERT_TRUE(m_env->open_file(path, {.create = true, .direct = false}, &file).ok());
  }
  // Files whose path begins so, and goes on.
  size_t count(const std::string& prefix) const {
    const auto files = m_env->files();
    return static_cast<size_t>(
        std::count_if(files.begin(), files.end(), [&](const std::string& file) { return file.starts_with(prefix); }));
  }
  static ghobject_t object(unsigned number) {
    return ghobject_t(hobject_t(object_t("object" + std::to_string(number)), "", CEPH_NOSNAP, number, 1, ""));
  }
  static std::string bytes_of(unsigned number) { return std::string(5000 + 3000 * number, 'a' + number % 26); }
  void write(SwimStore& on, unsigned objects) {
    auto handle = on.create_new_collection(kPg);
    ObjectStore::Transaction create;
    create.create_collection(kPg, 0);
    on.queue_transaction(handle, std::move(create));
    for (unsigned number = 0; number < objects; ++number) {
      ObjectStore::Transaction txn;
      ceph::bufferlist data;
      data.append(bytes_of(number));
      txn.write(kPg, object(number), 0, data.length(), data);
      on.queue_transaction(handle, std::move(txn));
    }
  }
  void expect_whole(unsigned objects) {
    EXPECT_EQ(0, store()->fsck(true));
    auto mounted = store();
    ASSERT_EQ(0, mounted->mount());
    {
      auto handle = mounted->open_collection(kPg);
      ASSERT_TRUE(handle);
      for (unsigned number = 0; number < objects; ++number) {
        ceph::bufferlist data;
        mounted->read(handle, object(number), 0, 0, data);
        EXPECT_EQ(bytes_of(number), data.to_str()) << number;
      }
    }
    EXPECT_EQ(0, mounted->umount());
  }
  // A store with this many objects, that was unmounted.
  void make_with(unsigned objects) {
    const Status made = make();
    ASSERT_TRUE(made.ok()) << made.message();
    auto first = store();
    ASSERT_EQ(0, first->mount());
    write(*first, objects);
    ASSERT_EQ(0, first->umount());
  }
  // And nothing is changed, whatever a mount may do about damage.
  void expect_mount_refused(const std::string& named) {
    g_ceph_context->_conf.set_val_or_die("swimstore_mount_damaged_cubes", "incomplete");
    const auto before = m_env->files();
    const Status status = store()->try_mount();
    EXPECT_EQ(Status::Code::failed, status.code()) << status.message();
    EXPECT_NE(std::string::npos, status.message().find(named)) << status.message();
    EXPECT_EQ(before, m_env->files());
  }
  void write_line(const std::string& path, const std::string& line) {
    const size_t slash = path.rfind('/');
    const Status status = StoreDirectory(m_env.get(), path.substr(0, slash)).write_meta(path.substr(slash + 1), line);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  static inline const coll_t kPg{spg_t(pg_t(0, 1))};
  std::unique_ptr<vtkv::SimEnv> m_env;
};

}  // namespace

TEST_F(MetadataDeviceTest, LogAndTreeLieThereAndDataHere) {
  make_with(20);
  EXPECT_EQ(1u, count("/other/metadata/0/manifest"));
  EXPECT_LT(0u, count("/other/metadata/0/log/"));
  EXPECT_LT(0u, count("/osd/cubes/0/containers/"));
  EXPECT_EQ(count("/osd/cubes/0/"), count("/osd/cubes/0/containers/"));
  EXPECT_EQ(0u, count("/other/metadata/0/containers"));

  expect_whole(20);
}

// Its file is as long as the tree ever was.
TEST_F(MetadataDeviceTest, WhatTheTreeHasNoSpaceForIsNotCopied) {
  constexpr uint64_t kLongAgo = 64u << 20;
  make_with(20);
  {
    std::unique_ptr<vtkv::File> tree;
    ASSERT_TRUE(m_env->open_file("/other/metadata/0/tree", {}, &tree).ok());
    ASSERT_TRUE(tree->truncate(kLongAgo).ok() && tree->sync().ok());
  }
  uint64_t bytes = 0;
  ASSERT_TRUE(store()->move_metadata("", &bytes).ok());
  EXPECT_LT(bytes, kLongAgo / 2);
  expect_whole(20);
}

// Opened without the store, a database would checkpoint past the store's state: its slots would count as free.
TEST_F(MetadataDeviceTest, ProgramsThatKnowTheEngineAloneSeeThatTheyAreAStores) {
  prepare("2");
  const auto is_stores = [this](const std::string& place) {
    for (const char* cube : {"/0", "/1", "/2"}) {
      EXPECT_EQ(Status::Code::invalid_argument, vtkv::check_sole_owner(m_env.get(), place + cube).code())
          << place << cube;
    }
  };
  ASSERT_TRUE(make().ok());
  is_stores(kMetadata);
  for (const char* cube : {"/0", "/1", "/2"}) {  // of an older program
    ASSERT_TRUE(m_env->remove_file(std::string(kMetadata) + cube + "/part_of").ok());
  }
  auto first = store();
  ASSERT_EQ(0, first->mount());
  write(*first, 20);
  ASSERT_EQ(0, first->umount());
  is_stores(kMetadata);
  uint64_t bytes = 0;
  ASSERT_TRUE(store()->move_metadata("", &bytes).ok());
  EXPECT_EQ(0u, count("/other/metadata/0/"));
  EXPECT_EQ(count("/osd/cubes/0/part_of"), 0u);
  ASSERT_TRUE(store()->move_metadata(kMetadata, &bytes).ok());
  is_stores(kMetadata);
  expect_whole(20);
}

TEST_F(MetadataDeviceTest, EachCubeHasItsOwn) {
  prepare("2");
  make_with(20);
  for (const char* cube : {"0", "1", "2"}) {
    EXPECT_EQ(1u, count(std::string("/other/metadata/") + cube + "/manifest")) << cube;
    EXPECT_EQ(1u, count(std::string("/osd/cubes/") + cube + "/containers/header")) << cube;
  }
  EXPECT_EQ(0, store()->fsck(true));
}

// One sync there and one here make a write durable, where one flush covers all files of a file system; of one that has
// no data, the one there.
TEST_F(MetadataDeviceTest, AWriteTakesAFlushOfEachFileSystem) {
  make_with(4);
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  auto handle = mounted->open_collection(kPg);
  const auto synced_by = [&](ObjectStore::Transaction&& txn) {
    m_env->run_until_idle();
    const size_t before = m_env->trace().syncs.size();
    mounted->queue_transaction(handle, std::move(txn));
    m_env->run_until_idle();
    std::map<std::string, unsigned> directories;
    for (size_t i = before; i < m_env->trace().syncs.size(); ++i) {
      ++directories[m_env->trace().syncs[i].directory];
    }
    return directories;
  };
  ObjectStore::Transaction data_of_two_sizes;
  for (const unsigned number : {0, 1}) {
    ceph::bufferlist data;
    data.append(std::string(number == 0 ? 4096 : 8192, 'x'));
    data_of_two_sizes.write(kPg, object(number), 0, data.length(), data);
  }
  EXPECT_EQ(synced_by(std::move(data_of_two_sizes)),
            (std::map<std::string, unsigned>{{"/osd/cubes/0/containers", 1}, {"/other/metadata/0/log", 2}}))
      << "the second one of the log is of the record that a cube writes when it falls idle behind data";
  ObjectStore::Transaction omap;
  omap.omap_setkeys(kPg, object(0), std::map<std::string, ceph::bufferlist>{{"key", {}}});
  EXPECT_EQ(synced_by(std::move(omap)), (std::map<std::string, unsigned>{{"/other/metadata/0/log", 1}}));
  handle.reset();
  EXPECT_EQ(0, mounted->umount());
}

TEST_F(MetadataDeviceTest, ADirectoryThatIsNotMountedIsNamed) {
  prepare("2");
  make_with(4);
  // What lies below the mount point.
  write_line("/osd/metadata_path", "/other/empty");
  ASSERT_TRUE(m_env->create_directory("/other/empty").ok());
  expect_mount_refused("/other/empty");
  EXPECT_EQ(0u, count("/osd/cube_"));
  std::unique_ptr<StoreFiles> files;
  EXPECT_EQ(Status::Code::failed, StoreFiles::open(m_env.get(), kPath, {}, StoreFiles::Purpose::look, &files).code());
  EXPECT_NE(0, store()->fsck(false));

  write_line("/osd/metadata_path", kMetadata);
  expect_whole(4);
}

TEST_F(MetadataDeviceTest, SoIsThatOfAnotherStore) {
  make_with(4);
  ASSERT_TRUE(m_env->create_directory("/second").ok());
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", "/other/second");
  ASSERT_TRUE(make("/second").ok());
  write_line("/osd/metadata_path", "/other/second");
  expect_mount_refused("/other/second");
}

TEST_F(MetadataDeviceTest, TheLineThatSaysWhereCanBeWrittenAnew) {
  make_with(4);
  ASSERT_TRUE(m_env->remove_file("/osd/metadata_path").ok());
  expect_mount_refused("/osd/metadata_path");
  write_line("/osd/metadata_path", kMetadata);
  EXPECT_EQ(0, store()->fsck(true));
}

TEST_F(MetadataDeviceTest, TheOsdsOwnFsidIsNotNeeded) {
  make_with(4);
  ASSERT_TRUE(m_env->remove_file("/osd/fsid").ok());
  EXPECT_EQ(0, store()->fsck(true));
}

TEST_F(MetadataDeviceTest, WithoutASuperblockItsObjectsAreSaved) {
  make_with(4);
  ASSERT_TRUE(m_env->remove_file("/osd/superblock").ok());
  std::unique_ptr<StoreFiles> files;
  const Status opened = StoreFiles::open(m_env.get(), kPath, {}, StoreFiles::Purpose::salvage, &files);
  ASSERT_TRUE(opened.ok()) << opened.message();
  size_t objects = 0;
  const Status status = files->for_each_cube([&] {
    return files->for_each_object([&](const StoredObject&) {
      ++objects;
      return Status();
    });
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(4u, objects);
}

// What a move has left behind looks like a store as well, and is older than what was written since.
TEST_F(MetadataDeviceTest, WithoutASuperblockTheLogThatWentOnIsChosen) {
  for (const bool back : {false, true}) {
    prepare();
    use_small_stores(g_ceph_context, {{"swimstore_metadata_path", back ? kMetadata : ""}});
    make_with(4);
    m_env->fail_nth(vtkv::SimCall::remove, 2, Status::from_errno(EIO, "injected"), true);
    uint64_t bytes = 0;
    EXPECT_FALSE(store()->move_metadata(back ? "" : kMetadata, &bytes).ok());
    m_env->clear_faults();
    ASSERT_TRUE(m_env->exists("/osd/move_metadata_unfinished"));
    ASSERT_TRUE(m_env->exists("/osd/cubes/0/manifest") && m_env->exists(std::string(kMetadata) + "/0/manifest"));
    auto later = store();
    ASSERT_EQ(0, later->mount());
    {
      auto handle = later->open_collection(kPg);
      ObjectStore::Transaction txn;
      txn.touch(kPg, object(9));
      later->queue_transaction(handle, std::move(txn));
    }
    ASSERT_EQ(0, later->umount());
    ASSERT_TRUE(m_env->remove_file("/osd/superblock").ok());
    std::unique_ptr<StoreFiles> files;
    const Status opened = StoreFiles::open(m_env.get(), kPath, {}, StoreFiles::Purpose::salvage, &files);
    ASSERT_TRUE(opened.ok()) << opened.message();
    EXPECT_EQ(files->directory().metadata_directory(), back ? "" : kMetadata);
  }
}

TEST_F(MetadataDeviceTest, ASuperblockFromBeforeTheMoveIsToldFromDamage) {
  use_small_stores(g_ceph_context);
  make_with(4);
  std::string old;
  ASSERT_TRUE(vtkv::read_small_file(m_env.get(), "/osd/superblock", &old).ok());
  uint64_t bytes = 0;
  const Status moved = store()->move_metadata(kMetadata, &bytes);
  ASSERT_TRUE(moved.ok()) << moved.message();
  std::string now;
  ASSERT_TRUE(vtkv::read_small_file(m_env.get(), "/osd/superblock", &now).ok());
  ASSERT_TRUE(vtkv::replace_small_file(m_env.get(), "/osd/superblock", old).ok());
  expect_mount_refused("from before they were moved");
  ASSERT_TRUE(vtkv::replace_small_file(m_env.get(), "/osd/superblock", now).ok());
  EXPECT_EQ(0, store()->fsck(true));
}

// The line was corrected by hand while a move was unfinished: by text, neither of its ends is the directory in use.
TEST_F(MetadataDeviceTest, WhatIsInUseIsNotEmptiedForItsOtherName) {
  make_with(4);
  write_line("/osd/move_metadata_unfinished", "-\t/other/metadata");
  write_line("/osd/metadata_path", "/other//metadata");
  uint64_t bytes = 0;
  EXPECT_EQ(Status::Code::failed, store()->move_metadata("", &bytes).code());
  EXPECT_EQ(0, store()->fsck(true));
  write_line("/osd/metadata_path", kMetadata);
  EXPECT_TRUE(store()->move_metadata("/other/metadata/", &bytes).ok());
  EXPECT_EQ(0u, bytes);
  EXPECT_FALSE(m_env->exists("/osd/move_metadata_unfinished"));
  EXPECT_EQ(0, store()->fsck(true));
}

// A sync failed behind the one write that moves log and tree, so the power may take it back. Until it is durable
// nothing may be acknowledged that only the new place has.
TEST_F(MetadataDeviceTest, ASwitchIsDurableBeforeAnythingIsServed) {
  const coll_t later(spg_t(pg_t(1, 1)));
  unsigned switched = 0;
  for (const char* from : {"", "/other/first"}) {
    for (uint64_t n = 1, failed = 1; failed != 0; ++n) {
      use_small_stores(g_ceph_context, {{"swimstore_metadata_path", from}});
      m_env = std::make_unique<vtkv::SimEnv>();
      ASSERT_TRUE(m_env->create_directory(kPath).ok());
      ASSERT_TRUE(m_env->create_directory(vtkv::kSimOtherFileSystem).ok());
      make_with(4);
      m_env->run_until_idle();
      m_env->restart_trace();
      uint64_t bytes = 0;
      m_env->fail_nth(SimCall::sync_directory, n, Status::from_errno(EIO, "played"), /*persistent=*/false);
      failed = store()->move_metadata(kMetadata, &bytes).ok() ? 0 : 1;
      m_env->clear_faults();
      auto mounted = store();
      ASSERT_EQ(0, mounted->mount()) << n;
      {
        auto handle = mounted->create_new_collection(later);
        ObjectStore::Transaction create;
        create.create_collection(later, 0);
        mounted->queue_transaction(handle, std::move(create));
        m_env->run_until_idle();
      }
      ASSERT_EQ(0, mounted->umount());
      mounted.reset();
      switched += m_env->exists("/other/metadata/0/manifest") && failed != 0 ? 1 : 0;
      vtkv::CrashImages images(m_env->trace(), {.seed = n});
      const size_t end = images.cut_count() - 1;
      const uint64_t count = images.state_count(end);
      for (const uint64_t number : {uint64_t{0}, count / 2, count - 1}) {
        const auto crashed = images.materialize(images.state(end, number));
        SwimStore again(g_ceph_context, kPath, crashed.get());
        ASSERT_EQ(0, again.mount()) << from << " " << n;
        EXPECT_TRUE(again.collection_exists(later)) << from << " " << n;
        ASSERT_EQ(0, again.umount());
      }
    }
  }
  EXPECT_LT(0u, switched);
}

TEST_F(MetadataDeviceTest, MkfsLeavesAloneWhatIsThere) {
  ASSERT_TRUE(m_env->create_directory(kMetadata).ok());
  ASSERT_TRUE(m_env->create_directory("/other/metadata/lost+found").ok());
  create("/other/metadata/pictures");
  const Status status = make();
  EXPECT_EQ(Status::Code::invalid_argument, status.code());
  EXPECT_NE(std::string::npos, status.message().find("/other/metadata")) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("pictures")) << status.message();
  EXPECT_TRUE(m_env->exists("/other/metadata/pictures"));
  ASSERT_TRUE(m_env->remove_file("/other/metadata/pictures").ok());
  make_with(2);
  EXPECT_TRUE(m_env->exists("/other/metadata/lost+found"));
}

TEST_F(MetadataDeviceTest, MkfsLeavesAloneTheMetadataOfAnotherStore) {
  make_with(4);
  ASSERT_TRUE(m_env->create_directory("/second").ok());
  const Status status = make("/second");
  EXPECT_EQ(Status::Code::invalid_argument, status.code());
  EXPECT_NE(std::string::npos, status.message().find("/other/metadata/0/")) << status.message();
  EXPECT_EQ(0, store()->fsck(true));
}

// Where one has just claimed it, there is no file in it yet that would keep the other one away.
TEST_F(MetadataDeviceTest, TwoStoresThatWantOneDirectoryAtOnce) {
  use_small_stores(g_ceph_context);
  make_with(4);
  for (const char* path : {"/second", "/third"}) {
    ASSERT_TRUE(m_env->create_directory(path).ok());
  }
  ASSERT_TRUE(make("/second").ok());
  StoreDirectory first(m_env.get(), kPath);
  Superblock superblock;
  ASSERT_TRUE(first.read_superblock(&superblock).ok());
  std::unique_ptr<vtkv::FileLock> lock;
  const Status begun = first.begin_metadata_move({"", kMetadata}, 1, &lock);
  ASSERT_TRUE(begun.ok()) << begun.message();
  std::string owner, owner_now;
  ASSERT_TRUE(StoreDirectory(m_env.get(), kMetadata).read_meta("fsid", &owner).ok());

  uint64_t bytes = 0;
  const Status moved = store("/second")->move_metadata(kMetadata, &bytes);
  EXPECT_EQ(Status::Code::busy, moved.code()) << moved.message();
  EXPECT_NE(std::string::npos, moved.message().find(kMetadata)) << moved.message();
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", kMetadata);
  EXPECT_EQ(Status::Code::busy, make("/third").code());
  ASSERT_TRUE(StoreDirectory(m_env.get(), kMetadata).read_meta("fsid", &owner_now).ok());
  EXPECT_EQ(owner, owner_now);

  lock.reset();
  EXPECT_TRUE(store()->move_metadata(kMetadata, &bytes).ok());
  expect_whole(4);
  EXPECT_EQ(0, store("/second")->fsck(true));
}

// Else it would look like the store's own one when the file system that belongs there is not mounted.
TEST_F(MetadataDeviceTest, ADirectoryThatIsRefusedIsNotClaimed) {
  g_ceph_context->_conf.set_val_or_die("swimstore_allow_unproven_file_system", "false");
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", "/near");
  const Status status = make();
  EXPECT_NE(std::string::npos, status.message().find("itself")) << status.message();
  EXPECT_FALSE(m_env->exists("/near/fsid"));
  EXPECT_FALSE(m_env->exists("/osd/metadata_path"));
}

// An mkfs that failed has named a place; so has a move, whose fast device is gone. A store in its cubes has neither.
TEST_F(MetadataDeviceTest, WhatAnAttemptHasLeftMisleadsNobody) {
  use_small_stores(g_ceph_context);
  write_line("/osd/metadata_path", "/other/gone");
  write_line("/osd/move_metadata_unfinished", "-\t/other/gone");
  make_with(4);
  EXPECT_FALSE(m_env->exists("/osd/metadata_path"));
  EXPECT_FALSE(m_env->exists("/osd/move_metadata_unfinished"));
  write_line("/osd/metadata_path", "/other/gone");
  write_line("/osd/move_metadata_unfinished", "-\t/other/gone");
  expect_whole(4);
  EXPECT_FALSE(m_env->exists("/osd/metadata_path"));
}

TEST_F(MetadataDeviceTest, LogAndTreeDoNotMoveIntoThemselves) {
  make_with(4);
  uint64_t bytes = 0;
  for (const char* to : {"/other/metadata/0/new", "/other/metadata/new", "/other//metadata/0"}) {
    EXPECT_EQ(Status::Code::invalid_argument, store()->move_metadata(to, &bytes).code()) << to;
    EXPECT_FALSE(m_env->exists("/osd/move_metadata_unfinished"));
  }
  expect_whole(4);
}

// The first one ended before the directory was its own; meanwhile a file system was mounted there.
TEST_F(MetadataDeviceTest, ARepeatedMkfsEmptiesNoDirectoryThatIsNotItsOwn) {
  ASSERT_TRUE(m_env->create_directory(kMetadata).ok());
  bool was_recorded = false;
  for (uint64_t n = 1; !was_recorded; ++n) {
    m_env->fail_nth(SimCall::rename, n, Status::from_errno(EACCES, "played"), /*persistent=*/true);
    ASSERT_FALSE(make().ok());
    m_env->clear_faults();
    was_recorded = m_env->exists("/osd/metadata_path");
  }
  ASSERT_FALSE(m_env->exists("/other/metadata/fsid"));
  ASSERT_TRUE(m_env->create_directory("/other/metadata/ceph-1").ok());
  create("/other/metadata/ceph-1/log");
  EXPECT_EQ(Status::Code::invalid_argument, make().code());
  EXPECT_TRUE(m_env->exists("/other/metadata/ceph-1/log"));
}

TEST_F(MetadataDeviceTest, APathThatIsNoneIsRefused) {
  for (const char* path : {"metadata", "/osd", "/osd/metadata", "/osd/../osd/x", "/other/x ", "/other/a\tb"}) {
    g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", path);
    const Status status = make();
    EXPECT_EQ(Status::Code::invalid_argument, status.code()) << path;
    EXPECT_NE(std::string::npos, status.message().find("outside of /osd")) << status.message();
  }
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", "/nowhere/metadata");
  const Status status = make();
  EXPECT_NE(std::string::npos, status.message().find("/nowhere/metadata")) << status.message();
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", "/other/metadata//");
  make_with(2);
  g_ceph_context->_conf.set_val_or_die("swimstore_metadata_path", "no/path");  // of the next store
  EXPECT_EQ(0, store()->fsck(true));
}

// Wherever it is cut short, it can be run again.
TEST_F(MetadataDeviceTest, AnInterruptedMkfsCanBeRunAgain) {
  unsigned cut = 0;
  for (const vtkv::SimFault& fault : vtkv::sim_faults({{"create_directory_always", SimCall::create_directory, true}})) {
    for (uint64_t n = 1;; ++n) {
      prepare("2");
      m_env->fail_nth(fault.call, n, Status::from_errno(fault.error_number, "played"), fault.persistent);
      if (make().ok()) {
        break;
      }
      ++cut;
      m_env->clear_faults();
      const Status again = make();
      ASSERT_TRUE(again.ok()) << fault.name << " " << n << ": " << again.message();
      ASSERT_EQ(0, store()->fsck(true)) << fault.name << " " << n;
    }
  }
  EXPECT_LT(50u, cut);
}

TEST_F(MetadataDeviceTest, MoreCubesAreMadeInBothPlaces) {
  make_with(20);
  unsigned had = 0;
  const Status added = store()->add_cubes(2, &had);
  ASSERT_TRUE(added.ok()) << added.message();
  for (const char* cube : {"0", "1", "2"}) {
    EXPECT_EQ(1u, count(std::string("/other/metadata/") + cube + "/manifest")) << cube;
    EXPECT_EQ(1u, count(std::string("/osd/cubes/") + cube + "/containers/header")) << cube;
  }
  expect_whole(20);
}

TEST_F(MetadataDeviceTest, ACubeThatIsAbandonedIsMadeAnewInBothPlaces) {
  prepare("2");
  make_with(4);
  ASSERT_TRUE(StoreDirectory(m_env.get(), kPath).mark_cube(2, {CubeMark::State::abandoned, "a test says so"}).ok());
  for (const char* name : {"/other/metadata/2/manifest", "/osd/cubes/2/containers/header"}) {
    ASSERT_TRUE(m_env->remove_file(name).ok());
  }
  const Status made = store()->reset_cube(2, /*force=*/true);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(1u, count("/other/metadata/2/manifest"));
  EXPECT_EQ(1u, count("/osd/cubes/2/containers/header"));
  EXPECT_FALSE(vtkv::check_sole_owner(m_env.get(), "/other/metadata/2").ok());
  EXPECT_EQ(0, store()->fsck(true));
}

// The other file system's room decides, too: none is enough here.
TEST_F(MetadataDeviceTest, AStoreIsFullWhenEitherFileSystemIs) {
  make_with(4);
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  store_statfs_t report;
  osd_alert_list_t alerts;
  ASSERT_EQ(0, mounted->statfs(&report, &alerts));
  EXPECT_TRUE(alerts.empty());
  EXPECT_LT(report.get_used_raw_ratio(), 0.5);
  g_ceph_context->_conf.set_val_or_die("swimstore_host_free_min_ratio", "1");
  ASSERT_EQ(0, mounted->statfs(&report, &alerts));
  EXPECT_EQ(1u, alerts.count("SWIMSTORE_METADATA_FULL"));
  EXPECT_NE(std::string::npos, alerts["SWIMSTORE_METADATA_FULL"].find(kMetadata));
  EXPECT_GT(report.get_used_raw_ratio(), 0.95);
  g_ceph_context->_conf.rm_val("swimstore_host_free_min_ratio");
  EXPECT_EQ(0, mounted->umount());
}

// Its own reserve lets the store be mounted, and objects removed, where that file system has no byte left.
TEST_F(MetadataDeviceTest, AFullMetadataFileSystemTakesDeletes) {
  constexpr uint64_t kHostBytes = 32u << 20;
  m_env->set_other_capacity(kHostBytes);
  make_with(20);
  ASSERT_EQ(1u, count("/other/metadata/reserve"));
  const auto reserve_bytes = [&] {
    std::unique_ptr<vtkv::File> file;
    uint64_t bytes = 0;
    const Status status = m_env->open_file("/other/metadata/reserve", {.read_only = true, .direct = false}, &file);
    EXPECT_TRUE(status.ok() && file->size(&bytes).ok());
    return bytes;
  };
  const uint64_t whole_bytes = reserve_bytes();
  {
    std::unique_ptr<vtkv::File> file;
    ASSERT_TRUE(m_env->open_file("/other/another", {.create = true, .direct = false}, &file).ok());
    const std::string bytes(kHostBytes - m_env->other_allocated_bytes(), 'x');
    ASSERT_TRUE(file->write(0, bytes.data(), bytes.size()).ok());
  }
  EXPECT_EQ(0, store()->fsck(true));
  EXPECT_LT(reserve_bytes(), whole_bytes) << "nobody but recovery makes room for a check";
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  auto handle = mounted->open_collection(kPg);
  for (unsigned round = 0; round < 30; ++round) {
    for (unsigned number = 0; number < 20; ++number) {
      ObjectStore::Transaction txn;
      txn.remove(kPg, object(number));
      if (round < 29) {
        txn.touch(kPg, object(number));
      }
      mounted->queue_transaction(handle, std::move(txn));
    }
    m_env->run_until_idle();
  }
  handle.reset();
  ASSERT_EQ(0, mounted->umount());
  EXPECT_EQ(0, store()->fsck(true));
}

TEST_F(MetadataDeviceTest, TheOsdTellsOfBoth) {
  make_with(4);
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  std::map<std::string, std::string> metadata;
  mounted->collect_metadata(&metadata);
  EXPECT_EQ(kMetadata, metadata["swimstore_metadata_path"]);
  EXPECT_EQ("sim1", metadata["swimstore_metadata_device"]);
  EXPECT_EQ("sim0", metadata["swimstore_host_device"]);
  EXPECT_EQ(0, mounted->umount());
}

}  // namespace swimstore
