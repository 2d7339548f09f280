// SPDX-License-Identifier: LGPL-2.1-or-later
// More cubes for a store, where something is in the way: refused, interrupted, out of room, damaged.

#include "swimstore/testing/grow_fixture.h"

namespace swimstore {

using vtkv::Status;

TEST_F(GrowTest, WhatCannotBeDoneIsSaidAndChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(make(2));
  const std::string before = superblock().encode();
  for (const unsigned wrong : {0u, 3u, 5u, 65u, 96u, 128u, 0x80000000u, 0xffffffffu}) {
    const Status status = add(wrong);
    EXPECT_EQ(Status::Code::invalid_argument, status.code()) << wrong;
    EXPECT_NE(std::string::npos, status.message().find("up to 64 cubes")) << status.to_string();
  }
  const Status fewer = add(1);
  EXPECT_EQ(Status::Code::invalid_argument, fewer.code());
  EXPECT_NE(std::string::npos, fewer.message().find("over 2 cubes already")) << fewer.to_string();
  mount();
  SwimStore other(g_ceph_context, kGrowPath, &m_env);
  unsigned had = 0;
  EXPECT_EQ(Status::Code::busy, other.add_cubes(4, &had).code());
  unmount();
  expect_precious_kept();
  EXPECT_FALSE(m_env.exists(kGrowPath + "/cubes/3"));
  EXPECT_FALSE(m_env.exists(kGrowPath + "/add_cubes_unfinished"));
  EXPECT_EQ(before, superblock().encode());
  mount();
  expect_state();
  unmount();
}

TEST_F(GrowTest, WhatSomebodyPutThereSinceAnInterruptedAttemptIsKept) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  interrupt(1, 2, 3);
  expect_precious_kept();
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(1u, superblock().cubes);
  ASSERT_TRUE(add(2).ok());
  mount();
  expect_state();
  unmount();
}

namespace {

class GrowInterrupted : public GrowTest, public ::testing::WithParamInterface<unsigned> {};

}  // namespace

TEST_P(GrowInterrupted, ItMayBeFollowedByASmallerAttemptOrTakenBack) {
  const unsigned from = GetParam();
  ASSERT_NO_FATAL_FAILURE(make(from));
  const std::string before = superblock().encode();
  const unsigned cubes = superblock().cubes;
  interrupt(cubes, 20, 65);
  mount();
  expect_state();
  unmount();
  EXPECT_TRUE(is_marked());
  ASSERT_TRUE(add(from).ok()) << "as many as there are";
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(before, superblock().encode());
  for (const std::string& file : m_env.files()) {
    EXPECT_FALSE(file.starts_with(fmt::format("{}/cubes/{}/", kGrowPath, cubes))) << file;
  }
  mount();
  expect_state();
  unmount();
  interrupt(cubes, 20, 65);
  m_env.run_until_idle();
  m_env.set_capacity(m_env.allocated_bytes());
  const Status added = add(4);
  ASSERT_TRUE(added.ok()) << "its room is had again: " << added.to_string();
  m_env.set_capacity(UINT64_MAX);
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(5u, superblock().cubes);
  mount();
  expect_state();
  unmount();
}

INSTANTIATE_TEST_SUITE_P(, GrowInterrupted, ::testing::Values(1u, 2u));

// It does not know the cubes that came later: what lies there would be lost, and what is known of it.
TEST_F(GrowTest, AnOldCopyOfTheSuperblockIsNotServed) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const Superblock first = superblock();
  ASSERT_TRUE(add(2).ok());
  const Superblock second = superblock();
  ASSERT_TRUE(add(4).ok());
  const Superblock third = superblock();
  GroupMove move;
  ASSERT_TRUE(m_store->move_group(pg(0, 10), 4, &move).ok());
  for (const Superblock& old : {first, second}) {
    ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_superblock(old).ok());
    expect_refused("is it an old copy?");
    const Status refused = add(4);
    EXPECT_NE(std::string::npos, refused.message().find("is it an old copy?")) << refused.to_string();
  }
  // A mark that was copied as well says that cubes 3 and 4 may be removed.
  ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_meta("add_cubes_unfinished", "5").ok());
  expect_refused("lies in cube 4, and the superblock says that there are 3 cubes");
  for (const unsigned to : {2u, 4u}) {
    EXPECT_EQ(Status::Code::failed, add(to).code());
  }
  ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_superblock(third).ok());
  mount();
  expect_state();
  EXPECT_EQ(4u, home_of(*m_store, pg(0, 10)));
  unmount();
}

TEST_F(GrowTest, ADamagedMarkKeepsNoStoreFromServing) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  StoreDirectory directory(&m_env, kGrowPath);
  for (const std::string text : {"", "many", "3 cubes", "4", "0", "-1", "4294967299"}) {
    ASSERT_TRUE(directory.write_meta("add_cubes_unfinished", text).ok());
    mount();
    expect_state();
    unmount();
    const Status status = add(2);
    EXPECT_EQ(Status::Code::failed, status.code()) << text;
    EXPECT_NE(std::string::npos, status.message().find("/store/add_cubes_unfinished does not hold a number of cubes"))
        << status.to_string();
  }
  EXPECT_EQ(1u, superblock().cubes);
  ASSERT_TRUE(m_env.remove_file(kGrowPath + "/add_cubes_unfinished").ok());
  ASSERT_TRUE(add(2).ok());
}

TEST_F(GrowTest, AMkfsForgetsTheMarkOfAStoreThatWasHereBefore) {
  use_small_stores(g_ceph_context);
  ASSERT_TRUE(m_env.create_directory(kGrowPath).ok());
  ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).write_meta("add_cubes_unfinished", "5").ok());
  m_store = std::make_unique<SwimStore>(g_ceph_context, kGrowPath, &m_env);
  ASSERT_EQ(0, m_store->mkfs());
  EXPECT_FALSE(is_marked());
}

TEST_F(GrowTest, WithoutRoomForTheFilesNothingChanges) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  m_env.run_until_idle();
  const std::string before = superblock().encode();
  const uint64_t used = m_env.allocated_bytes();
  m_env.set_capacity(used + (4u << 20));
  const Status status = add(64);
  EXPECT_TRUE(status.is_no_space()) << status.to_string();
  EXPECT_NE(std::string::npos, status.message().find("has room for")) << status.to_string();
  EXPECT_EQ(before, superblock().encode());
  EXPECT_FALSE(m_env.exists(kGrowPath + "/add_cubes_unfinished"));
  mount();
  expect_state();
  unmount();
  m_env.set_capacity(UINT64_MAX);
  ASSERT_TRUE(add(64).ok());
  mount();
  expect_state();
  unmount();
}

// The host gets full while they are made.
TEST_F(GrowTest, WhatWasMadeIsRemovedWhereOneCannotBeMade) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const std::string before = superblock().encode();
  m_env.fail_nth(vtkv::SimCall::allocate, 20, Status::from_errno(ENOSPC, "a test says so"), true);
  const Status status = add(16);
  m_env.clear_faults();
  EXPECT_TRUE(status.is_no_space()) << status.to_string();
  EXPECT_NE(std::string::npos, status.message().find("/store is as it was")) << status.to_string();
  EXPECT_EQ(before, superblock().encode());
  EXPECT_FALSE(has_files_of_new_cubes());
  EXPECT_FALSE(m_env.exists(kGrowPath + "/add_cubes_unfinished"));
  ASSERT_TRUE(add(16).ok()) << "the directories that are left are its own";
  mount();
  expect_state();
  unmount();
}

TEST_F(GrowTest, WhatRepairQuarantinedComesFirst) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const ghobject_t of_group(hobject_t(object_t("other"), "", CEPH_NOSNAP, 0, 10, ""));
  const auto quarantine = [this](const ghobject_t& oid) {
    change_cube_0(
        [&oid](vtkv::DB&, vtkv::WriteBatch* batch) { batch->put(quarantined_key(0, object_key(oid)), "value"); });
  };
  quarantine(of_group);
  quarantine(growing_store_object());
  const Status status = add(2);
  EXPECT_EQ(Status::Code::failed, status.code());
  EXPECT_NE(std::string::npos, status.message().find("list --quarantined-entries")) << status.to_string();
  EXPECT_EQ(std::string::npos, status.message().find("fsck")) << status.to_string();
  EXPECT_EQ(1u, superblock().cubes);
  uint64_t entries = 0;
  ASSERT_TRUE(m_store->forget_quarantined(&entries).ok());
  quarantine(of_group);  // is put back as it is
  ASSERT_TRUE(add(2).ok());
}

TEST_F(GrowTest, WhatCannotBeDecodedIsFoundBeforeAnythingChanges) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  const std::string before = superblock().encode();
  const std::string key = object_key(growing_store_object());
  std::string record;
  change_cube_0([&](vtkv::DB& database, vtkv::WriteBatch* batch) {
    ASSERT_TRUE(database.get(key, &record).ok());
    batch->put(key, "no record");
  });
  const Status status = add(2);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(std::string::npos,
            status.message().find("cannot be decoded. Nothing was changed: 'ceph-swimstore-tool fsck"))
      << status.to_string();
  EXPECT_EQ(before, superblock().encode());
  EXPECT_FALSE(m_env.exists(kGrowPath + "/cubes/1"));
  EXPECT_FALSE(is_marked());
  change_cube_0([&](vtkv::DB&, vtkv::WriteBatch* batch) { batch->put(key, record); });
  mount();
  expect_state();
  unmount();
}

}  // namespace swimstore
