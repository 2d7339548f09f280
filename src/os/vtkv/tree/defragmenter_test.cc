// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/defragmenter.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

constexpr uint64_t kZone = 1 << 20;

TEST(Defragmenter, ChoosesZonesThatGainMostForEachByteMoved) {
  const std::vector<ZoneUsage> zones = {
      {.live_bytes = kZone, .entries = 9999, .fragments = 1, .in_use = true},      // full, one fragment
      {.live_bytes = kZone / 2, .entries = 9999, .fragments = 1, .in_use = true},  // half empty
      {.live_bytes = kZone / 8, .entries = 9999, .fragments = 1, .in_use = true},
      {.live_bytes = 0, .in_use = true},                                       // readers will let go of it
      {.live_bytes = kZone, .entries = 9999, .fragments = 193, .in_use = true},     // full, in small fragments
      {.live_bytes = 0},
      {.live_bytes = 4096, .entries = 9, .fragments = 1, .in_use = true, .open = true},  // still written to
  };
  EXPECT_EQ(Defragmenter::choose(zones, kZone, 0.5), (std::vector<uint64_t>{2, 4, 1}));
  EXPECT_EQ(Defragmenter::choose(zones, kZone, 1.2), (std::vector<uint64_t>{2, 4}));
}

class DefragmentTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.stitch_threshold_bytes = 0;
    make();
  }
  static std::string key(uint64_t i) {
    char text[24];
    std::snprintf(text, sizeof text, "key%09llu", static_cast<unsigned long long>(i));
    return text;
  }
  void put(uint64_t first, uint64_t end, uint64_t step, const std::string& value) {
    MemTable table;
    for (uint64_t i = first; i < end; i += step) {
      table.put(++m_sequence, key(i), value);
    }
    ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 1, 4096, 7}, {}).ok());
  }
  // A tree whose zones are full of holes: ranges all over it are overwritten, and what is between stitched.
  void make_holes() {
    put(0, 20000, 1, std::string(100, 'a'));
    for (uint64_t round = 0; round < 6; ++round) {
      put(round * 150, 20000, 900, std::string(100, static_cast<char>('b' + round)));
      ASSERT_TRUE(m_tree->compact_all({}).ok());
    }
  }
  uint64_t wasted() const {
    uint64_t bytes = 0;
    for (const ZoneUsage& zone : m_tree->zone_usage()) {
      bytes += zone.in_use ? m_options.geometry.zone_bytes - zone.live_bytes : 0;
    }
    return bytes;
  }
  std::string contents() {
    std::vector<std::unique_ptr<EntryIterator>> iterators;
    std::vector<std::shared_ptr<const RangeTombstones>> tombstones;
    const auto version = m_tree->current();
    version->new_iterators("", "", &iterators, &tombstones);
    std::string all;
    EXPECT_EQ(iterators.size(), 1u);
    for (iterators[0]->seek_to_first(); iterators[0]->valid(); iterators[0]->next()) {
      all.append(iterators[0]->entry().key).append(iterators[0]->entry().value).append("\n");
    }
    EXPECT_TRUE(iterators[0]->status().ok());
    return all;
  }
  // Both manifest copies have to let go of the old addresses.
  void two_checkpoints() {
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(m_tree->flush(MemTable(), {m_sequence, 1, 1, 4096, 7}, {}).ok());
    }
  }
};

TEST_F(DefragmentTest, APassReturnsWastedZonesAndChangesNoEntry) {
  make_holes();
  two_checkpoints();
  const std::string before = contents();
  const uint64_t wasted_before = wasted();
  ASSERT_GT(wasted_before, 10 * m_options.geometry.zone_bytes);
  const uint64_t compacted_before = m_tree->statistics().compaction_bytes;
  Defragmenter defragmenter(m_tree.get());
  defragmenter.start({.gain_min = 0.2, .bytes_per_step = 256 << 10});
  int steps = 0;
  std::chrono::microseconds wait{}, waited{};
  while (defragmenter.running()) {
    ASSERT_LT(++steps, 1000);
    ASSERT_TRUE(defragmenter.step({}, &wait).ok());
    waited += wait;
  }
  two_checkpoints();
  EXPECT_GT(steps, 3);
  EXPECT_EQ(contents(), before);
  EXPECT_LT(wasted(), wasted_before / 2);
  const DefragmentReport report = defragmenter.report();
  EXPECT_GT(report.chosen_zones, 10u);
  // Waits as long as its rate demands.
  EXPECT_NEAR(static_cast<double>(waited.count()), static_cast<double>(report.written_bytes) / 64 / 1.048576, 1000.0);
  EXPECT_EQ(report.written_bytes, m_tree->statistics().compaction_bytes - compacted_before);
  EXPECT_GT(report.written_bytes, report.moved_bytes);
  EXPECT_LT(report.written_bytes, report.moved_bytes * 5 / 4);  // no filter with each step
  std::vector<std::string> findings;
  m_tree->verify(&findings);
  EXPECT_EQ(findings, std::vector<std::string>());
  open();
  EXPECT_EQ(contents(), before);
}

TEST_F(DefragmentTest, ATreeWithoutHolesIsLeftAlone) {
  put(0, 20000, 1, std::string(100, 'a'));
  Defragmenter defragmenter(m_tree.get());
  defragmenter.start({});
  std::chrono::microseconds wait;
  while (defragmenter.running()) {
    ASSERT_TRUE(defragmenter.step({}, &wait).ok());
  }
  EXPECT_EQ(defragmenter.report().moved_bytes, 0u);
}

// The older checkpoint would keep everything that the last compaction replaced.
TEST_F(DefragmentTest, AtRestOnlyWhatTheRunsHoldTakesZones) {
  m_options.stitch_threshold_bytes = kNeverStitch;
  open();
  for (int round = 0; round < 4; ++round) {
    put(0, 4000, 1, std::string(100, 'v'));
  }
  for (bool did = true; did;) {
    ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
  }
  const TreeStatistics statistics = m_tree->statistics();
  ASSERT_EQ(statistics.runs, 1u);
  EXPECT_LT(statistics.zones_in_use, statistics.live_bytes / m_options.geometry.zone_bytes + 5);
}

}  // namespace
}  // namespace vtkv
