// SPDX-License-Identifier: LGPL-2.1-or-later
// A repair runs as a whole: nobody comes in between its passes, and a store is not served before one has come to its
// end.

#include "swimstore/testing/damage_fixture.h"
#include "vtkv/testing/sim_fault.h"

namespace swimstore {

namespace {

class RepairMarkTest : public DamageFixture {
 protected:
  // Of three classes, so of three passes.
  void damage_several() {
    damage([](Cube& cube, Damage& damage) {
      Stored object = stored(cube, "small");
      object.shard = stored(cube, "other").shard;
      store(damage, "small", object);
      damage.batch.put("Obroken", "value");
      for (uint64_t i = 0; i < 8; ++i) {
        damage.batch.put(omap_key(kNobody + i, "key"), std::string(3000, 'v'));
      }
    });
  }
  bool is_marked() { return m_env->exists(m_path + "/repair_unfinished"); }
  int mount() {
    SwimStore store(g_ceph_context, m_path, m_env);
    const int r = store.mount();
    return r < 0 ? r : store.umount();
  }
  vtkv::Status try_repair() {
    SwimStore store(g_ceph_context, m_path, m_env);
    store.set_fatal_handler([](const vtkv::Status&) {});
    m_changes.clear();
    return store.repair({}, &m_changes, &m_result);
  }
};

}  // namespace

TEST_P(RepairMarkTest, TheLockIsHeldFromTheFirstPassToTheLast) {
  damage_several();
  const unsigned before = m_simulated.locks(m_path + "/lock");
  ASSERT_TRUE(try_repair().ok());
  EXPECT_GT(m_changes.size(), 2u);
  EXPECT_EQ(before + 1, m_simulated.locks(m_path + "/lock"));
  EXPECT_FALSE(is_marked());
}

// From the n-th write on, for n = 1, 2, …, nothing reaches the disk, as when the process is killed.
TEST_P(RepairMarkTest, WhatWasCutShortIsNotServed) {
  unsigned refused = 0;
  for (uint64_t n = 1;; ++n) {
    damage_several();
    const Kinds before = check();
    vtkv::NthFailure failure(&m_simulated, vtkv::SimCall::write, n, true);
    const vtkv::Status status = try_repair();
    if (!failure.end()) {
      EXPECT_TRUE(status.ok());
      break;
    }
    if (is_marked()) {
      ++refused;
      EXPECT_TRUE(check().contains(FindingClass::repair_unfinished));
      SwimStore store(g_ceph_context, m_path, m_env);
      const vtkv::Status mounting = store.try_mount();
      EXPECT_FALSE(mounting.ok());
      EXPECT_NE(std::string::npos, mounting.message().find("ceph-swimstore-tool repair " + m_path)) << n;
    } else {
      const Kinds after = check();
      EXPECT_TRUE(after == before || after.empty()) << n;  // not begun, or over but for the check that follows
    }
    ASSERT_TRUE(try_repair().ok()) << n;
    EXPECT_EQ(Kinds(), check()) << n;
    EXPECT_FALSE(is_marked());
    ASSERT_EQ(0, mount()) << n;
    ASSERT_LT(n, 1000u);
  }
  EXPECT_GT(refused, 3u);
}

TEST_P(RepairMarkTest, AStoreWithNothingToMendIsNotMarked) {
  ASSERT_TRUE(try_repair().ok());
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(0, mount());
}

INSTANTIATE_TEST_SUITE_P(, RepairMarkTest, ::testing::Values(Host::simulated),
                         [](const auto&) { return std::string("Simulated"); });

}  // namespace swimstore
