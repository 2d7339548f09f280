// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/memory_manager.h"

#include <gtest/gtest.h>

#include "common/ceph_context.h"
#include "common/config.h"
#include "global/global_context.h"

namespace swimstore {

namespace {

// Holds what it was asked to hold, as far as it may.
struct FakeCache {
  uint64_t wanted_bytes = 0;
  uint64_t capacity_bytes = 0;
  uint64_t memory_bytes() const { return std::min(wanted_bytes, capacity_bytes); }
  ManagedCache managed(const char* name, const char* ratio_option) {
    return {name, ratio_option, [this] { return memory_bytes(); }, [this](uint64_t bytes) { capacity_bytes = bytes; }};
  }
};

void set_autotune(const char* value) {
  g_ceph_context->_conf.set_val_or_die("swimstore_cache_autotune", value);
  g_ceph_context->_conf.apply_changes(nullptr);
}

class MemoryManagerTest : public ::testing::Test {
 protected:
  // Small stores of tests before this one have none.
  struct Autotuned {
    Autotuned() { set_autotune("true"); }
    ~Autotuned() { set_autotune("true"); }
  };

  void adjust(int turns) {
    for (int i = 0; i < turns; ++i) {
      m_manager.adjust();
    }
  }
  uint64_t sum() const { return m_onodes.capacity_bytes + m_tree.capacity_bytes + m_data.capacity_bytes; }

  Autotuned m_autotuned;  // before the manager, which reads it once
  FakeCache m_onodes;
  FakeCache m_tree;
  FakeCache m_data;
  MemoryManager m_manager{g_ceph_context,
                          {m_onodes.managed("onodes", "swimstore_cache_meta_ratio"),
                           m_tree.managed("tree", "swimstore_cache_kv_ratio"), m_data.managed("data", nullptr)}};
};

}  // namespace

TEST_F(MemoryManagerTest, WhatOthersDoNotUseIsSoonHad) {
  adjust(5);
  const uint64_t before = m_data.capacity_bytes;
  m_data.wanted_bytes = UINT64_MAX;
  adjust(8);
  EXPECT_GT(m_data.capacity_bytes, 2 * before);
  EXPECT_GT(m_data.capacity_bytes, sum() * 8 / 10);
}

TEST_F(MemoryManagerTest, WhetherItTunesIsReadAtTheMount) {
  adjust(5);
  const uint64_t before = m_data.capacity_bytes;
  set_autotune("false");
  m_data.wanted_bytes = UINT64_MAX;
  adjust(8);
  EXPECT_GT(m_data.capacity_bytes, 2 * before);
}

TEST_F(MemoryManagerTest, WhenAllWantMoreTheRatiosDecide) {
  m_data.wanted_bytes = UINT64_MAX;
  adjust(20);
  m_onodes.wanted_bytes = m_tree.wanted_bytes = UINT64_MAX;
  adjust(20);
  EXPECT_NEAR(0.45, static_cast<double>(m_onodes.capacity_bytes) / sum(), 0.05);
  EXPECT_NEAR(0.35, static_cast<double>(m_tree.capacity_bytes) / sum(), 0.05);
  EXPECT_NEAR(0.20, static_cast<double>(m_data.capacity_bytes) / sum(), 0.05);
}

TEST_F(MemoryManagerTest, TheSumStaysBelowTheTarget) {
  m_onodes.wanted_bytes = m_tree.wanted_bytes = m_data.wanted_bytes = UINT64_MAX / 2;
  adjust(20);
  EXPECT_LT(sum(), g_ceph_context->_conf.get_val<Option::size_t>("osd_memory_target"));
}

}  // namespace swimstore
