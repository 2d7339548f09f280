// SPDX-License-Identifier: LGPL-2.1-or-later
// A store with four cubes in the simulated host, of which two placement groups each have an object, and which may lose
// one of the cubes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/ceph_context.h"
#include "common/code_environment.h"
#include "swimstore/cube/cube_set.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/superblock.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/group_info.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "swimstore/transaction/placement.h"

namespace swimstore {

class IsolationFixture : public SimStoreFixture {
 protected:
  static constexpr unsigned kGroups = 8;
  static constexpr unsigned kLost = 2;  // the cube
  static constexpr epoch_t kEpoch = 7;

  IsolationFixture() : SimStoreFixture({{"swimstore_cubes", "4"}}) {}

  static coll_t group(unsigned number) { return coll_t(spg_t(pg_t(number, 2))); }
  static ghobject_t object_of(unsigned number) {
    return ghobject_t(hobject_t(object_t("object"), "", CEPH_NOSNAP, number, 2, ""));
  }

  void SetUp() override {
    SimStoreFixture::SetUp();
    for (unsigned number = 0; number < kGroups; ++number) {
      make_group(number);
    }
    m_env.run_until_idle();
    unmount();
  }
  void TearDown() override {
    if (m_mounted) {
      unmount();
    }
    m_store.reset();
    use_small_stores(g_ceph_context);
  }

  void make_group(unsigned number) {
    const coll_t cid = group(number);
    auto handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction txn;
    txn.create_collection(cid, 3);
    put_info(cid, kEpoch, &txn);
    ceph::bufferlist data;
    data.append(std::string(10000, static_cast<char>('a' + number)));
    txn.write(cid, object_of(number), 0, data.length(), data);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  vtkv::Status mount(const char* damaged_cubes = "refuse") {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "4"}, {"swimstore_mount_damaged_cubes", damaged_cubes}});
    g_code_env = m_environment;
    const vtkv::Status status = m_store->try_mount();
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    m_mounted = status.ok();
    return status;
  }
  void unmount() {
    m_pg.reset();
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
    m_mounted = false;
  }
  // All of its files.
  void remove_cube(unsigned cube = kLost) {
    const std::string below = kPath + "/cubes/" + std::to_string(cube) + "/";
    for (const std::string& file : m_env.files()) {
      if (file.starts_with(below)) {
        ASSERT_TRUE(m_env.remove_file(file).ok()) << file;
      }
    }
  }
  std::unique_ptr<CubeSet> open_cubes() {
    std::unique_ptr<CubeSet> cubes;
    EXPECT_TRUE(open_cubes_of(g_ceph_context, &m_env, kPath, {.goes_on = true}, &cubes).ok());
    return cubes;
  }
  // Of a store that is not mounted: the tree of one cube.
  template <typename Fill>
  void change(unsigned cube, const Fill& fill) {
    const std::unique_ptr<CubeSet> cubes = open_cubes();
    vtkv::WriteBatch batch;
    fill(&batch);
    ASSERT_TRUE((*cubes)[cube].database().write(std::move(batch)).ok());
  }
  // As version 0.4 made it.
  void make_older() {
    Superblock superblock;
    ASSERT_TRUE(Superblock::read(&m_env, kPath, &superblock).ok());
    superblock.features.ro_compat.clear();
    ASSERT_TRUE(StoreDirectory(&m_env, kPath).write_superblock(superblock).ok());
    change(0, [](vtkv::WriteBatch* batch) {
      batch->remove_range(std::string(1, key_prefix::witness), std::string(1, key_prefix::witness + 1));
    });
  }
  void spoil_pgmeta() {
    change(kLost, [](vtkv::WriteBatch* batch) { batch->put(object_key(pgmeta_of(in_lost_cube())), "no onode"); });
  }
  static ghobject_t pgmeta_of(unsigned number) {
    spg_t pgid;
    group(number).is_pg(&pgid);
    return pgid.make_pgmeta_oid();
  }
  static unsigned in_lost_cube() {
    unsigned number = 0;
    while (!lay_in(number, kLost)) {
      ++number;
    }
    return number;
  }
  uint64_t groups_committed_by_cube_0() {
    m_env.run_until_idle();
    std::string text;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore status")", &text));
    const std::string key = "\"commit_groups\": ";
    const size_t at = text.find(key, text.find("\"cubes\": ["));
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + key.size()));
  }
  std::string read(unsigned number) {
    auto handle = m_store->open_collection(group(number));
    ceph::bufferlist data;
    const int r = handle ? m_store->read(handle, object_of(number), 0, 0, data) : -ENXIO;
    return r < 0 ? "error " + std::to_string(r) : data.to_str();
  }
  unsigned home(unsigned number) { return home_of(*m_store, group(number)); }
  static bool lay_in(unsigned number, unsigned cube) { return new_home(group(number), 5) == cube; }
  std::string alert() {
    store_statfs_t space;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&space, &alerts));
    const auto found = alerts.find("SWIMSTORE_CUBE_FAILED");
    return found == alerts.end() ? "" : found->second;
  }
  std::optional<CubeMark> mark(unsigned cube = kLost) {
    std::optional<CubeMark> found;
    EXPECT_TRUE(StoreDirectory(&m_env, kPath).read_cube_mark(cube, &found).ok());
    return found;
  }
  // Those of the lost cube are there, empty, elsewhere, and remember the epoch; the others have what they had.
  void expect_the_others_served() {
    unsigned lost = 0;
    for (unsigned number = 0; number < kGroups; ++number) {
      if (!lay_in(number, kLost)) {
        EXPECT_EQ(read(number), std::string(10000, static_cast<char>('a' + number))) << number;
        EXPECT_EQ(home(number), new_home(group(number), 5));
        continue;
      }
      ++lost;
      EXPECT_EQ(read(number), "error -2") << number;
      EXPECT_NE(home(number), kLost);
      EXPECT_NE(home(number), 0u);
      const std::optional<pg_info_t> info = read_info(*m_store, group(number));
      ASSERT_TRUE(info) << number;
      EXPECT_EQ(info->history.last_epoch_started, kEpoch);
      EXPECT_EQ(info->history.last_interval_started, kEpoch);
      EXPECT_EQ(info->history.epoch_created, 1u);
      EXPECT_EQ(info->last_epoch_started, 0u);
      EXPECT_EQ(info->last_update, eversion_t());
      EXPECT_EQ(info->log_tail, eversion_t());
      EXPECT_TRUE(info->is_incomplete());
      EXPECT_EQ(info->last_backfill, hobject_t());
      EXPECT_FALSE(info->dne());
    }
    EXPECT_EQ(lost, 2u);
  }

  bool m_mounted = true;
  code_environment_t m_environment = CODE_ENVIRONMENT_DAEMON;
};

}  // namespace swimstore
