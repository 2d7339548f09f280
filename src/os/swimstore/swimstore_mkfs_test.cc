// SPDX-License-Identifier: LGPL-2.1-or-later
// What mkfs may remove, and that it removes nothing else: in a simulated host, and with real files, where links are.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPath = "/osd";

// Somebody else comes between a look and the lock.
class CrowdedEnv final : public vtkv::SimEnv {
 public:
  CrowdedEnv() : SimEnv({.record = false}) {}
  void before_next_lock(std::function<void()> work) { m_work = std::move(work); }
  vtkv::Status lock_file(const std::string& path, std::unique_ptr<vtkv::FileLock>* lock) override {
    if (m_work) {
      std::exchange(m_work, nullptr)();
    }
    return SimEnv::lock_file(path, lock);
  }

 private:
  std::function<void()> m_work;
};

uuid_d to_fsid(const std::string& text) {
  uuid_d fsid;
  EXPECT_TRUE(fsid.parse(text.c_str()));
  return fsid;
}

class MkfsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context);
    ASSERT_TRUE(m_env.create_directory(kPath).ok());
  }

  static std::string file(const std::string& name) { return std::string(kPath) + "/" + name; }
  vtkv::Status make(const std::string& fsid = {}) {
    SwimStore store(g_ceph_context, kPath, &m_env);
    if (!fsid.empty()) {
      store.set_fsid(to_fsid(fsid));
    }
    return store.make();
  }
  // What mkfs and mount say, which change nothing.
  void expect_refused(int error, const std::string& named) {
    const auto before = m_env.files();
    vtkv::Status status = make();
    EXPECT_EQ(error, status.error_number());
    EXPECT_NE(std::string::npos, status.message().find(named)) << status.message();
    SwimStore store(g_ceph_context, kPath, &m_env);
    status = store.try_mount();
    EXPECT_EQ(error, status.error_number());
    EXPECT_NE(std::string::npos, status.message().find(named)) << status.message();
    EXPECT_EQ(std::string::npos, status.message().find("make one")) << status.message();
    auto after = m_env.files();
    std::erase(after, file("lock"));
    auto without_lock = before;
    std::erase(without_lock, file("lock"));
    EXPECT_EQ(without_lock, after);
  }
  void expect_sound() {
    SwimStore store(g_ceph_context, kPath, &m_env);
    EXPECT_EQ(0, store.fsck(false));
    ASSERT_EQ(0, store.mount());
    EXPECT_EQ(0, store.umount());
    EXPECT_FALSE(m_env.exists(file("mkfs_unfinished")));
  }
  void create(const std::string& name) {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      ASSERT_TRUE(m_env.create_directory(file(name.substr(0, slash))).ok());
    }
    std::unique_ptr<vtkv::File> made;
    ASSERT_TRUE(m_env.open_file(file(name), {.create = true, .direct = false}, &made).ok());
  }

  CrowdedEnv m_env;
  const std::string m_fsid = "11111111-2222-3333-4444-555555555555";
  const std::string m_other_fsid = "66666666-7777-8888-9999-aaaaaaaaaaaa";
};

}  // namespace

TEST_F(MkfsTest, AStoreWhoseSuperblockIsMissingIsLeftAlone) {
  ASSERT_TRUE(make().ok());
  ASSERT_TRUE(m_env.remove_file(file("superblock")).ok());
  expect_refused(EIO, "/osd/cubes/0 is there");
}

TEST_F(MkfsTest, AnyFileOfAStoreIsEnoughForThat) {
  for (const char* name : {"ready", "cubes/0/manifest", "cubes/0/containers/header", "cubes/pictures/cube.png"}) {
    create(name);
    expect_refused(EIO, "do not run mkfs");
    ASSERT_TRUE(m_env.remove_file(file(name)).ok());
  }
}

// Where mkfs itself left off, it begins anew; but not where the OSD says that it came to its end.
TEST_F(MkfsTest, WhatWasReadyIsNotHalfMade) {
  m_env.fail_nth(vtkv::SimCall::rename, 4, vtkv::Status::from_errno(EIO, "injected"), true);
  EXPECT_FALSE(make().ok());
  m_env.clear_faults();
  ASSERT_TRUE(m_env.exists(file("mkfs_unfinished")));
  create("ready");
  expect_refused(EIO, "/osd/ready is there");
  ASSERT_TRUE(m_env.remove_file(file("ready")).ok());
  ASSERT_TRUE(make().ok());
  expect_sound();
}

TEST_F(MkfsTest, WhereverItEndedItCanBeginAnew) {
  using vtkv::SimCall;
  for (const SimCall call : {SimCall::open, SimCall::write, SimCall::sync, SimCall::rename, SimCall::sync_directory,
                             SimCall::create_directory, SimCall::remove}) {
    for (uint64_t n = 1;; ++n) {
      CrowdedEnv env;
      ASSERT_TRUE(env.create_directory(kPath).ok());
      SwimStore store(g_ceph_context, kPath, &env);
      vtkv::NthFailure failure(&env, call, n, true);
      const int r = store.mkfs();
      const bool reached = failure.end();
      EXPECT_TRUE(reached || r == 0) << n;
      EXPECT_EQ(0, store.mkfs()) << static_cast<int>(call) << " " << n;
      EXPECT_EQ(0, store.mount()) << static_cast<int>(call) << " " << n;
      EXPECT_FALSE(env.exists(file("mkfs_unfinished")));
      EXPECT_EQ(0, store.umount());
      if (!reached) {
        break;
      }
    }
  }
}

TEST_F(MkfsTest, OfTwoAtOnceTheSecondFindsTheStoreOfTheFirst) {
  m_env.before_next_lock([this] { EXPECT_TRUE(make(m_fsid).ok()); });
  EXPECT_EQ(EEXIST, make(m_other_fsid).error_number());
  expect_sound();
  SwimStore store(g_ceph_context, kPath, &m_env);
  ASSERT_TRUE(store.make().ok());
  EXPECT_EQ(m_fsid, store.get_fsid().to_string());
}

// An fsid that cannot be read is not replaced by another.
TEST_F(MkfsTest, AnFsidThatCannotBeReadStays) {
  create("fsid");
  m_env.fail_nth(vtkv::SimCall::size, 1, vtkv::Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(EIO, make().error_number());
}

TEST_F(MkfsTest, AnEmptyDirectorySaysWhatToMake) {
  SwimStore store(g_ceph_context, kPath, &m_env);
  const vtkv::Status status = store.try_mount();
  EXPECT_EQ(ENOENT, status.error_number());
  EXPECT_NE(std::string::npos, status.message().find("make one")) << status.message();
}

// ---- links

namespace {

class MkfsLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context);
    ASSERT_NE(nullptr, ::mkdtemp(m_folder.data()));
    fs::create_directory(m_folder + "/osd");
    fs::create_directory(m_folder + "/elsewhere");
    std::ofstream(m_folder + "/elsewhere/precious") << "precious";
  }
  void TearDown() override { fs::remove_all(m_folder); }

  std::string file(const std::string& name) const { return m_folder + "/osd/" + name; }
  bool is_precious_there() const { return fs::exists(m_folder + "/elsewhere/precious"); }
  int mkfs(bool cut_short = false) {
    SwimStore store(g_ceph_context, m_folder + "/osd");
    if (cut_short) {
      store.set_cube_options_hook([](CubeOptions& options) { options.containers.chunk_bytes = 3; });
    }
    return store.mkfs();
  }

  std::string m_folder = fs::current_path() / "mkfs_test.XXXXXX";
};

}  // namespace

TEST_F(MkfsLinkTest, ASuperblockThatLeadsNowhereIsNoMissingOne) {
  ASSERT_EQ(0, mkfs());
  fs::rename(file("superblock"), m_folder + "/superblock");
  fs::create_symlink(m_folder + "/nowhere", file("superblock"));
  EXPECT_GT(0, mkfs());
  EXPECT_TRUE(fs::exists(file("cubes/0/manifest")));
  fs::remove(file("superblock"));
  fs::rename(m_folder + "/superblock", file("superblock"));
  SwimStore store(g_ceph_context, m_folder + "/osd");
  ASSERT_EQ(0, store.mount());
  EXPECT_EQ(0, store.umount());
}

// A cube that was abandoned may have been taken elsewhere, to be looked at.
TEST_F(MkfsLinkTest, AResetFollowsNoLink) {
  fs::create_directory(file("cubes"));
  fs::create_directory_symlink(m_folder + "/elsewhere", file("cubes/2"));
  EXPECT_EQ(vtkv::Status::Code::invalid_argument,
            StoreDirectory(vtkv::posix_env(), m_folder + "/osd").empty_cube(2).code());
  EXPECT_TRUE(is_precious_there());
}

TEST_F(MkfsLinkTest, WhatALinkLeadsToIsLeftAlone) {
  fs::create_directory_symlink(m_folder + "/elsewhere", file("cubes"));
  EXPECT_GT(0, mkfs());
  EXPECT_TRUE(is_precious_there());
  fs::remove(file("cubes"));
  // Also in a store that was half made.
  EXPECT_EQ(-EINVAL, mkfs(true));
  ASSERT_TRUE(fs::exists(file("cubes/0")));
  fs::rename(file("cubes"), file("cubes.half_made"));
  fs::create_directory_symlink(m_folder + "/elsewhere", file("cubes"));
  EXPECT_EQ(-EINVAL, mkfs());
  EXPECT_TRUE(is_precious_there());
  fs::remove(file("cubes"));
  fs::rename(file("cubes.half_made"), file("cubes"));
  fs::create_directory_symlink(m_folder + "/elsewhere", file("cubes/link"));
  EXPECT_EQ(0, mkfs());
  EXPECT_TRUE(is_precious_there());
}

}  // namespace swimstore
