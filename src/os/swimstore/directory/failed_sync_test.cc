// SPDX-License-Identifier: LGPL-2.1-or-later
// The sync of a directory fails: what it should have covered is there, and may be gone after a loss of power, whatever
// later syncs say. Who goes on from it writes it anew first.

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

namespace {

using vtkv::SimCall;
using vtkv::SimEnv;
using vtkv::Status;

constexpr const char* kPath = "/store";
constexpr unsigned kGroups = 8;
constexpr unsigned kReset = 2;  // the cube

coll_t group(unsigned number) { return coll_t(spg_t(pg_t(number, 1))); }
ghobject_t object_of(unsigned number) {
  return ghobject_t(hobject_t(object_t("object"), "", CEPH_NOSNAP, number, 1, ""));
}

class FailedSyncTest : public ::testing::Test {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context); }

  void prepare(const char* cubes = "1") {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", cubes}});
    m_env = std::make_unique<SimEnv>();
    ASSERT_TRUE(m_env->create_directory(kPath).ok());
  }
  std::unique_ptr<SwimStore> store() {
    auto opened = std::make_unique<SwimStore>(g_ceph_context, kPath, m_env.get());
    opened->set_fatal_handler([](const Status&) {});  // a sync of a database fails, too
    return opened;
  }
  // A store whose cubes have known each other.
  void make(const char* cubes) {
    prepare(cubes);
    auto made = store();
    ASSERT_EQ(0, made->mkfs());
    ASSERT_EQ(0, made->mount());
    ASSERT_EQ(0, made->umount());
  }

  // The n-th such sync of what is done fails. Whether there was one.
  bool fail(uint64_t n, const std::function<bool()>& act) {
    m_env->restart_trace();
    m_env->fail_nth(SimCall::sync_directory, n, Status::from_errno(EIO, "played"), /*persistent=*/false);
    const bool failed = !act();
    m_env->clear_faults();
    return failed;
  }
  // With as little, and with as much as the power may leave.
  void after_power_loss(const std::function<void(SimEnv*)>& check) {
    m_env->run_until_idle();
    vtkv::CrashImages images(m_env->trace(), {.seed = 1});
    const size_t end = images.cut_count() - 1;
    for (const uint64_t number : {uint64_t{0}, images.state_count(end) - 1}) {
      check(images.materialize(images.state(end, number)).get());
    }
  }
  // Mounts it, writes an object into each of the groups, and looks for them after a loss of power.
  void expect_served_for_good(uint64_t n) {
    SCOPED_TRACE(n);
    auto mounted = store();
    ASSERT_EQ(0, mounted->mount());
    for (unsigned number = 0; number < kGroups; ++number) {
      auto handle = mounted->create_new_collection(group(number));
      ObjectStore::Transaction txn;
      txn.create_collection(group(number), 3);
      txn.touch(group(number), object_of(number));
      mounted->queue_transaction(handle, std::move(txn));
    }
    m_env->run_until_idle();
    ASSERT_EQ(0, mounted->umount());
    mounted.reset();
    after_power_loss([](SimEnv* crashed) {
      SwimStore again(g_ceph_context, kPath, crashed);
      ASSERT_EQ(0, again.mount());
      for (unsigned number = 0; number < kGroups; ++number) {
        auto handle = again.open_collection(group(number));
        EXPECT_TRUE(handle && again.exists(handle, object_of(number))) << number;
      }
      ASSERT_EQ(0, again.umount());
    });
  }

  std::unique_ptr<SimEnv> m_env;
};

TEST_F(FailedSyncTest, WhatIsBegunAgainIsMarkedForGood) {
  bool ignored = false;
  const std::vector<std::function<Status(StoreDirectory&)>> begins = {
      [](StoreDirectory& directory) { return directory.begin_repair(0); },
      [&](StoreDirectory& directory) { return directory.begin_import("/archive", &ignored); },
  };
  for (const auto& begin : begins) {
    prepare();
    StoreDirectory directory(m_env.get(), kPath);
    ASSERT_TRUE(fail(1, [&] { return begin(directory).ok(); }));
    ASSERT_TRUE(begin(directory).ok());
    after_power_loss([](SimEnv* crashed) { EXPECT_TRUE(StoreDirectory(crashed, kPath).is_unfinished()); });
  }
}

// As where nothing failed.
TEST_F(FailedSyncTest, OnAFullHostWithAnOlderSpareWhatIsMarkedGoesOn) {
  make("4");
  StoreDirectory directory(m_env.get(), kPath);
  ASSERT_TRUE(directory.mark_cube(kReset, {CubeMark::State::suspect, "a test says so"}).ok());
  ASSERT_TRUE(directory.claim_new_cubes(5, 9).ok());
  ASSERT_TRUE(m_env->remove_file(std::string(kPath) + "/spare").ok());
  m_env->set_capacity(m_env->allocated_bytes());
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  ASSERT_EQ(0, mounted->umount());
  std::optional<CubeMark> mark;
  ASSERT_TRUE(directory.read_cube_mark(kReset, &mark).ok());
  EXPECT_FALSE(mark) << "it is sound";

  m_env->set_capacity(uint64_t{1} << 40);
  bool again = false;
  ASSERT_TRUE(directory.begin_repair(0).ok());
  ASSERT_TRUE(directory.begin_import("/archive", &again).ok());
  ASSERT_TRUE(m_env->remove_file(std::string(kPath) + "/spare").ok());
  m_env->set_capacity(m_env->allocated_bytes());
  EXPECT_TRUE(directory.begin_repair(0).ok());
  EXPECT_TRUE(directory.begin_import("/archive", &again).ok());
}

// A read of the names that fails is not the end of them.
TEST_F(FailedSyncTest, TheNamesOfImportsAreNotReplacedUnread) {
  prepare();
  StoreDirectory directory(m_env.get(), kPath);
  bool again = false;
  ASSERT_TRUE(directory.begin_import("/archive", &again).ok());
  m_env->fail_nth(SimCall::read, 1, Status::from_errno(EIO, "played"), /*persistent=*/false);
  EXPECT_FALSE(directory.begin_import("/archive", &again).ok());
  EXPECT_EQ(directory.unfinished_imports(), std::vector<std::string>{"/archive"});
}

TEST_F(FailedSyncTest, AStoreIsMadeForGoodBeforeItServes) {
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    prepare();
    failed = fail(n, [&] { return store()->mkfs() == 0; });
    if (m_env->exists(std::string(kPath) + "/superblock")) {  // mkfs again says that there is a store
      ASSERT_EQ(0, store()->mkfs()) << n;
      ASSERT_NO_FATAL_FAILURE(expect_served_for_good(n));
    }
  }
}

TEST_F(FailedSyncTest, CubesAreAddedForGoodBeforeTheyServe) {
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    make("1");
    unsigned ignored = 0;
    failed = fail(n, [&] { return store()->add_cubes(2, &ignored).ok(); });
    ASSERT_NO_FATAL_FAILURE(expect_served_for_good(n));
  }
}

TEST_F(FailedSyncTest, ACubeIsMadeAnewForGoodBeforeItServes) {
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    make("4");
    StoreDirectory directory(m_env.get(), kPath);
    ASSERT_TRUE(directory.mark_cube(kReset, {CubeMark::State::abandoned, "a test says so"}).ok());
    failed = fail(n, [&] { return store()->reset_cube(kReset, true).ok(); });
    if (failed) {
      (void)store()->reset_cube(kReset, true);  // it may have been made anew already
    }
    ASSERT_NO_FATAL_FAILURE(expect_served_for_good(n));
  }
}

// What an abandoned cube has is old as soon as something was served without it.
TEST_F(FailedSyncTest, ACubeIsAbandonedForGoodBeforeTheOthersServe) {
  make("4");
  StoreDirectory directory(m_env.get(), kPath);
  ASSERT_TRUE(
      fail(1, [&] { return directory.mark_cube(kReset, {CubeMark::State::abandoned, "a test says so"}).ok(); }));
  auto mounted = store();
  ASSERT_EQ(0, mounted->mount());
  ASSERT_EQ(0, mounted->umount());
  mounted.reset();
  after_power_loss([](SimEnv* crashed) {
    std::optional<CubeMark> mark;
    ASSERT_TRUE(StoreDirectory(crashed, kPath).read_cube_mark(kReset, &mark).ok());
    EXPECT_TRUE(mark && mark->state == CubeMark::State::abandoned);
  });
}

}  // namespace

}  // namespace swimstore
