// SPDX-License-Identifier: LGPL-2.1-or-later
// Are the tree's figures what was done?

#include <gtest/gtest.h>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class TreeStatisticsTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.geometry.zone_bytes = 1 << 20;
    m_options.runs_per_level = m_options.growth_factor = 8;  // nothing is compacted by itself
  }
  void flush(int first, int end, size_t value_bytes) {
    MemTable table;
    for (int i = first; i < end; ++i) {
      table.put(++m_sequence, "key" + std::to_string(1'000'000 + i), std::string(value_bytes, 'v'));
    }
    table.remove_range(++m_sequence, "a", "b" + std::to_string(first));
    ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 1, m_sequence * 4096, 7}, {1}).ok());
  }
};

TEST_F(TreeStatisticsTest, WhatWasWrittenIsAllThatTheRunsHold) {
  m_options.stitch_threshold_bytes = kNeverStitch;
  make();
  flush(0, 3000, 100);
  EXPECT_EQ(m_tree->statistics().flush_bytes, m_tree->statistics().live_bytes);
  flush(1000, 4000, 100);
  EXPECT_EQ(m_tree->statistics().flush_bytes, m_tree->statistics().live_bytes);
  ASSERT_TRUE(m_tree->compact_all({1}).ok());
  EXPECT_EQ(m_tree->statistics().compaction_bytes, m_tree->statistics().live_bytes);
}

TEST_F(TreeStatisticsTest, ACompactionThatStitchesCountsItsFilterAndTheKeysReadForIt) {
  make();
  flush(0, 3000, 100);
  flush(3000, 6000, 100);
  ASSERT_TRUE(m_tree->compact_all({1}).ok());
  const TreeStatistics statistics = m_tree->statistics();
  ASSERT_GT(statistics.stitched_bytes, 0u);
  EXPECT_GE(statistics.compaction_bytes, statistics.filter_bytes);
  EXPECT_EQ(statistics.filter_read_bytes, statistics.stitched_bytes);
}

TEST_F(TreeStatisticsTest, BytesAreTheSumsOverTheRuns) {
  m_options.stitch_threshold_bytes = 4096;
  make();
  flush(0, 3000, 100);
  flush(1000, 1010, 100);
  ASSERT_TRUE(m_tree->compact_all({1}).ok());
  ASSERT_GT(m_tree->statistics().stitched_bytes, 0u);
  flush(2000, 2010, 100);
  uint64_t bytes = 0, index_bytes = 0;
  const std::shared_ptr<const Version> version = m_tree->current();
  for (const auto& run : static_cast<const RunVersion&>(*version).runs()) {
    bytes += run->descriptor().bytes() + run->location().span.bytes();
    index_bytes += run->descriptor().memory_bytes();
  }
  EXPECT_EQ(m_tree->statistics().live_bytes, bytes);
  EXPECT_EQ(m_tree->statistics().index_bytes, index_bytes);
}

}  // namespace
}  // namespace vtkv
