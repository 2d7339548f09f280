// SPDX-License-Identifier: LGPL-2.1-or-later
// What opening a tree reads.

#include <gtest/gtest.h>

#include <string>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class TreeOpenTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.runs_per_level = m_options.growth_factor = kRuns + 1;  // nothing is compacted by itself
    m_options.stitch_threshold_bytes = kNeverStitch;
    make();
  }
  void flush(int first, int end) {
    MemTable table;
    for (int i = first; i < end; ++i) {
      table.put(++m_sequence, "key" + std::to_string(10'000 + i), std::string(100, 'v'));
    }
    ASSERT_TRUE(m_tree->flush(table, {++m_sequence, 1, 1, m_sequence * 4096, 7}, {}).ok());
  }
  uint64_t reads_of_open() {
    const uint64_t before = m_env.calls(SimCall::read);
    open();
    return m_env.calls(SimCall::read) - before;
  }

  static constexpr int kRuns = 8;
};

// Filters are most of it, and runs that only the older copy of the manifest names need none.
TEST_F(TreeOpenTest, OfReplacedRunsNothingIsReadButWhereTheyLie) {
  for (int run = 0; run < kRuns; ++run) {
    flush(run * 1000, (run + 1) * 1000);
  }
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  ASSERT_EQ(m_tree->statistics().runs, 1u);
  const uint64_t reads = reads_of_open(), zones = m_tree->statistics().zones_in_use;
  flush(0, 0);  // the older copy lets go
  EXPECT_LT(m_tree->statistics().zones_in_use, zones);
  EXPECT_EQ(reads - reads_of_open(), uint64_t{kRuns});
}

}  // namespace
}  // namespace vtkv
