// SPDX-License-Identifier: LGPL-2.1-or-later
// A small store in the simulator, mounted, with one PG.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

class SimStoreFixture : public ::testing::Test {
 protected:
  // `options`: on top of those of a small store.
  explicit SimStoreFixture(OptionValues options = {}, bool interleaved = false)
      : m_env({.record = false, .interleaved = interleaved}) {
    use_small_stores(g_ceph_context, options);
  }

  void SetUp() override {
    ASSERT_TRUE(m_env.create_directory(kPath).ok());
    m_store = std::make_unique<SwimStore>(g_ceph_context, kPath, &m_env);
    ASSERT_EQ(0, m_store->mkfs());
    ASSERT_EQ(0, m_store->mount());
    m_pg = m_store->create_new_collection(kPg);
    ObjectStore::Transaction create;
    create.create_collection(kPg, 0);
    m_store->queue_transaction(m_pg, std::move(create));
  }
  void TearDown() override {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
  }

  static ghobject_t named(const std::string& name) {
    return ghobject_t(hobject_t(object_t(name), "", CEPH_NOSNAP, 7, 1, ""));
  }

  static inline const coll_t kPg{spg_t(pg_t(0, 1))};
  static inline const std::string kPath = "/store";

  vtkv::SimEnv m_env;
  std::unique_ptr<SwimStore> m_store;
  ObjectStore::CollectionHandle m_pg;
};

}  // namespace swimstore
