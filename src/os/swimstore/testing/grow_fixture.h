// SPDX-License-Identifier: LGPL-2.1-or-later
// What tests of SwimStore::add_cubes share: a store in the simulated host, and what it should hold.
//
// Not thread-safe.
#pragma once

#include <algorithm>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "common/code_environment.h"
#include "global/global_context.h"
#include "swimstore/cube/cube_set.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/format/collection_record.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/format/superblock.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/move/group_balance.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/group_info.h"
#include "swimstore/testing/growing_store.h"
#include "swimstore/testing/model_store.h"
#include "swimstore/testing/part_workload.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/testing/store_workload.h"
#include "swimstore/transaction/placement.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

inline const std::string kGrowPath = "/store";

inline coll_t pg(unsigned number, uint64_t pool) { return coll_t(spg_t(pg_t(number, pool))); }

class GrowTest : public ::testing::Test {
 protected:
  GrowTest() : m_env({.record = false}) {}
  ~GrowTest() override {
    m_store.reset();
    use_small_stores(g_ceph_context);
  }

  void make(unsigned data_cubes, const char* compress_metadata = "true") {
    const std::string text = std::to_string(data_cubes);
    use_small_stores(g_ceph_context,
                     {{"swimstore_cubes", text.c_str()}, {"swimstore_compress_metadata", compress_metadata}});
    ASSERT_TRUE(m_env.create_directory(kGrowPath).ok());
    m_store = std::make_unique<SwimStore>(g_ceph_context, kGrowPath, &m_env);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    fill_growing_store(*m_store, 1);
    m_state = read();
    unmount();
    use_small_stores(g_ceph_context);  // what the options say later counts for nothing
  }
  ModelState read() {
    std::string wrong;
    ModelState state = read_store(*m_store, &wrong);
    EXPECT_EQ("", wrong);
    return state;
  }
  void mount() { ASSERT_EQ(0, m_store->mount()); }
  void unmount() {
    m_env.run_until_idle();
    ASSERT_EQ(0, m_store->umount());
    ASSERT_EQ(0, m_store->fsck(true));
  }
  vtkv::Status add(unsigned data_cubes) {
    unsigned ignored = 0;
    return m_store->add_cubes(data_cubes, &ignored);
  }
  // Of cube 0, behind the store's back.
  template <typename Change>
  void change_cube_0(const Change& change) {
    Settings settings;
    ASSERT_TRUE(Settings::read(g_ceph_context, &settings).ok());
    std::unique_ptr<CubeSet> cubes;
    ASSERT_TRUE(CubeSet::open(&m_env, kGrowPath + "/cubes", settings.cube_options(true), {}, &cubes).ok());
    vtkv::WriteBatch batch;
    change((*cubes)[0].database(), &batch);
    ASSERT_TRUE((*cubes)[0].database().write(std::move(batch)).ok());
  }
  void create_cubes(unsigned first, unsigned end, unsigned cubes) {
    Settings settings;
    ASSERT_TRUE(Settings::read(g_ceph_context, &settings).ok());
    for (unsigned cube = first; cube < end; ++cube) {
      ASSERT_TRUE(CubeSet::create_one(&m_env, kGrowPath + "/cubes", settings.cube_options(true), cubes, cube).ok());
    }
  }
  // An attempt that was killed when it had made some of the new cubes.
  void interrupt(unsigned first, unsigned made, unsigned cubes) {
    ASSERT_TRUE(StoreDirectory(&m_env, kGrowPath).claim_new_cubes(first, cubes).ok());
    create_cubes(first, first + made, cubes);
  }
  void put_file(const std::string& path) {
    std::unique_ptr<vtkv::File> file;
    ASSERT_TRUE(m_env.open_file(path, {.create = true}, &file).ok());
  }
  bool has_files_of_new_cubes() {
    const std::vector<std::string> files = m_env.files();
    return std::any_of(files.begin(), files.end(), [](const std::string& file) {
      return file.starts_with(kGrowPath + "/cubes/") && !file.starts_with(kGrowPath + "/cubes/0/");
    });
  }
  // Somebody's directory lies where a cube would.
  void expect_precious_kept() {
    const std::string precious = kGrowPath + "/cubes/4/precious";
    ASSERT_TRUE(m_env.create_directory(kGrowPath + "/cubes/4").ok());
    put_file(precious);
    const vtkv::Status foreign = add(4);
    EXPECT_EQ(vtkv::Status::Code::failed, foreign.code());
    EXPECT_NE(std::string::npos, foreign.message().find(precious + " is there")) << foreign.to_string();
    EXPECT_TRUE(m_env.exists(precious));
  }
  bool is_marked() { return m_env.exists(kGrowPath + "/add_cubes_unfinished"); }
  void expect_refused(const std::string& why) {
    const vtkv::Status status = m_store->try_mount();
    EXPECT_EQ(vtkv::Status::Code::failed, status.code());
    EXPECT_NE(std::string::npos, status.message().find(why)) << status.to_string();
  }
  Superblock superblock() {
    Superblock found;
    EXPECT_TRUE(Superblock::read(&m_env, kGrowPath, &found).ok());
    return found;
  }
  void queue(const coll_t& on, ObjectStore::Transaction&& txn) {
    auto handle = m_store->open_collection(on);
    ASSERT_TRUE(handle);
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
  }
  void create(const coll_t& cid, unsigned bits) {
    auto handle = m_store->create_new_collection(cid);
    ObjectStore::Transaction txn;
    txn.create_collection(cid, static_cast<int>(bits));
    ASSERT_EQ(0, m_store->queue_transaction(handle, std::move(txn)));
    m_state[cid];
  }
  // Snapshots' keys by groups and by the OSD's own collection, wherever they lie.
  void change_parts(uint64_t seed) {
    std::string wrong;
    auto handles = PartWorkload::open(*m_store);
    PartWorkload::Omap omap = PartWorkload::read(*m_store, handles[0], &wrong);
    ASSERT_EQ("", wrong);
    PartWorkload workload(seed);
    for (uint64_t number = 1; number <= 60; ++number) {
      const PartStep step = workload.next();
      m_store->queue_transaction(handles[step.by], PartWorkload::transaction(step, number));
      PartWorkload::apply(step, &omap);
    }
    const PartWorkload::Omap found = PartWorkload::read(*m_store, handles[0], &wrong);
    EXPECT_EQ("", wrong);
    EXPECT_EQ(omap, found);
    m_state = read();
  }
  void change_objects(uint64_t seed) {
    const coll_t cid = pg(0, 10);
    StoreWorkload workload(cid, {.seed = seed, .objects = 4, .object_bytes_max = 60000}, m_state[cid]);
    for (unsigned i = 0; i < 10; ++i) {
      queue(cid, workload.next());
    }
    m_state[cid] = workload.model();
  }
  void expect_state() { EXPECT_EQ("", difference(m_state, read())); }

  vtkv::SimEnv m_env;
  std::unique_ptr<SwimStore> m_store;
  ModelState m_state;  // what it should hold
};

}  // namespace swimstore
