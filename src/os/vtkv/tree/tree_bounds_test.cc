// SPDX-License-Identifier: LGPL-2.1-or-later
// How much space the tree's file takes for what lives in it, and how much is written for that: at every moment of a
// load, with compaction as far behind as writers are let. The bounds are those of doc/vtkv.md, "Space in the tree's
// file".

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class TreeBoundsTest : public TreeFixture {
 protected:
  static constexpr uint64_t kMemtableBytes = 512 << 10;
  static constexpr uint64_t kValueBytes = 100;
  static constexpr uint64_t kEntryBytes = 128;  // of a block, about
  static constexpr uint64_t kEntriesPerMemtable = kMemtableBytes / kEntryBytes;

  TreeBoundsTest() {
    m_options.memtable_bytes = kMemtableBytes;
    m_options.geometry.zone_bytes = kMemtableBytes / 4;
    m_options.compress_blocks = false;
  }
  static std::string key(uint64_t i) { return "key" + std::to_string(1'000'000'000 + i); }
  void flush(const std::function<void(MemTable*)>& fill) {
    MemTable table;
    fill(&table);
    const Status status = m_tree->flush(table, {m_sequence, 1, 1, m_sequence * 4096, 7}, m_snapshots);
    ASSERT_TRUE(status.ok()) << status.to_string();
    look();
  }
  // One memtable of overwrites; then compactions until writers may go on, and some more.
  void overwrite(const std::function<uint64_t()>& next, int steps_more) {
    flush([&](MemTable* table) {
      for (uint64_t i = 0; i < kEntriesPerMemtable; ++i) {
        table->put(++m_sequence, key(next()), std::string(kValueBytes, 'v'));
      }
    });
    m_user_bytes += kMemtableBytes;
    for (bool did = true; did && (m_tree->compaction_pressure() >= 1 || steps_more > 0); --steps_more) {
      compact_once(&did);
    }
  }
  void compact_once(bool* did) {
    const uint64_t before = written();
    const Status status = m_tree->compact_once(m_snapshots, did);
    ASSERT_TRUE(status.ok()) << status.to_string();
    m_step_bytes_max = std::max(m_step_bytes_max, written() - before);
    look();
  }
  void rest() {
    int steps = 0;
    for (bool did = true; did; ++steps) {
      compact_once(&did);
      ASSERT_LT(steps, 10'000) << "it does not rest";
    }
  }
  uint64_t written() const {
    const TreeStatistics statistics = m_tree->statistics();
    return statistics.flush_bytes + statistics.compaction_bytes;
  }
  void look() {
    const uint64_t allocated = m_env.allocated_bytes();
    m_peak_bytes = std::max(m_peak_bytes, allocated);
    m_sum_bytes += allocated;
    ++m_looks;
  }
  void forget() {
    m_peak_bytes = m_sum_bytes = m_looks = m_user_bytes = m_step_bytes_max = 0;
    m_written_before = written();
  }
  // Of the live entries in a tree of one run.
  uint64_t fill(uint64_t memtables) {
    make();
    m_keys = memtables * kEntriesPerMemtable;
    for (uint64_t first = 0; first < m_keys; first += kEntriesPerMemtable) {
      flush([&](MemTable* table) {
        for (uint64_t i = first; i < first + kEntriesPerMemtable; ++i) {
          table->put(++m_sequence, key(i), std::string(kValueBytes, 'v'));
        }
      });
    }
    EXPECT_TRUE(m_tree->compact_all(m_snapshots).ok());
    rest();
    return m_tree->statistics().live_bytes;
  }

  std::vector<SequenceNumber> m_snapshots;
  std::mt19937_64 m_random{7};
  uint64_t m_keys = 0;
  uint64_t m_peak_bytes = 0, m_sum_bytes = 0, m_looks = 0, m_user_bytes = 0, m_written_before = 0, m_step_bytes_max = 0;
};

class TreeBoundsOfSizesTest : public TreeBoundsTest, public testing::WithParamInterface<uint64_t> {};

TEST_P(TreeBoundsOfSizesTest, OverwritesAtRandomStayInBounds) {
  const uint64_t live = fill(GetParam());
  forget();
  for (uint64_t i = 0; i < 6 * GetParam() + 40; ++i) {
    ASSERT_NO_FATAL_FAILURE(overwrite([&] { return m_random() % m_keys; }, i % 3 == 0 ? 1 : 0));
  }
  ASSERT_NO_FATAL_FAILURE(rest());
  const double live_part = static_cast<double>(live), memtable = static_cast<double>(kMemtableBytes);
  const double mean = static_cast<double>(m_sum_bytes) / static_cast<double>(m_looks);
  std::printf(
      "%lu memtables: %.2f x live at most, %.2f in the mean; %.2f bytes written for each; step %.2f memtables\n",
      GetParam(), static_cast<double>(m_peak_bytes) / live_part, mean / live_part,
      static_cast<double>(written() - m_written_before) / static_cast<double>(m_user_bytes),
      static_cast<double>(m_step_bytes_max) / memtable);
  EXPECT_LE(static_cast<double>(m_step_bytes_max), std::max(live_part / 8, 1.25 * memtable));
  const bool is_small = GetParam() < 16;
  EXPECT_LE(static_cast<double>(m_peak_bytes), 1.65 * live_part + (is_small ? 13 : 6) * memtable);
  EXPECT_LE(mean, 1.57 * live_part + (is_small ? 11 : 4) * memtable);
  EXPECT_LE(static_cast<double>(m_env.allocated_bytes()), 1.55 * live_part + 6 * memtable);
}

INSTANTIATE_TEST_SUITE_P(Memtables, TreeBoundsOfSizesTest, testing::Values(1, 4, 8, 16, 19, 48));

TEST_F(TreeBoundsTest, OverwritesInKeyOrderWriteLittle) {
  const uint64_t live = fill(16);
  forget();
  uint64_t next = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(overwrite([&] { return next++ % m_keys; }, 1));
  }
  ASSERT_NO_FATAL_FAILURE(rest());
  std::printf("in key order: %.2f x live at most, %.2f bytes written for each\n",
              static_cast<double>(m_peak_bytes) / static_cast<double>(live),
              static_cast<double>(written() - m_written_before) / static_cast<double>(m_user_bytes));
  EXPECT_LE(static_cast<double>(m_peak_bytes), 1.65 * static_cast<double>(live) + 6 * kMemtableBytes);
  EXPECT_LE(static_cast<double>(written() - m_written_before), 2.2 * static_cast<double>(m_user_bytes));
}

// The turn through the last level goes on behind it.
TEST_F(TreeBoundsTest, ADamagedPartStopsItsRangeOnly) {
  const uint64_t live = fill(32);
  Span span;
  {
    const auto version = std::static_pointer_cast<const RunVersion>(m_tree->current());
    ASSERT_GT(version->runs().size(), 10u);
    span = version->runs()[5]->descriptor().spans.front();
  }
  m_tree->cache()->resize(0);
  m_env.set_bad(SimBad::reads, "/db/tree", span.offset, span.offset + span.bytes());
  forget();
  uint64_t failures = 0;
  for (int i = 0; i < 150; ++i) {
    flush([&](MemTable* table) {
      for (uint64_t n = 0; n < kEntriesPerMemtable; ++n) {
        table->put(++m_sequence, key(m_random() % m_keys), std::string(kValueBytes, 'v'));
      }
    });
    for (int step = 0; step < 4; ++step) {
      bool did = false;
      const Status status = m_tree->compact_once(m_snapshots, &did);
      failures += status.ok() ? 0 : 1;
      if (status.ok() && !did) {
        break;
      }
    }
    look();
  }
  EXPECT_GT(failures, 0u);
  EXPECT_LT(failures, 20u) << "what is quarantined is not tried again by itself";
  EXPECT_LE(static_cast<double>(m_peak_bytes), 2.2 * static_cast<double>(live) + 8 * kMemtableBytes);
  m_env.clear_faults();
  m_tree->retry_quarantined();
  ASSERT_NO_FATAL_FAILURE(rest());
  EXPECT_TRUE(m_tree->quarantine().status.ok());
  std::vector<std::string> findings;
  m_tree->verify(&findings);
  EXPECT_EQ(findings, std::vector<std::string>());
}

// Tombstones are small and stand for entries that are not: they are weighed as those.
TEST_F(TreeBoundsTest, DeletesGiveSpaceBack) {
  for (const bool by_range : {false, true}) {
    for (const uint64_t percent : {10, 50, 90}) {
      SCOPED_TRACE((by_range ? "by range, " : "one by one, ") + std::to_string(percent));
      m_tree.reset();
      if (m_env.exists("/db")) {
        ASSERT_TRUE(m_env.remove_file("/db/manifest").ok());
        ASSERT_TRUE(m_env.remove_file("/db/tree").ok());
      }
      m_sequence = 0;
      fill(16);
      forget();
      flush([&](MemTable* table) {
        for (uint64_t i = 0; i < m_keys; ++i) {
          if (!by_range && m_random() % 100 < percent) {
            table->remove(++m_sequence, key(i));
          } else if (by_range && i % 1000 == 0) {
            table->remove_range(++m_sequence, key(i), key(i + 10 * percent));
          }
        }
      });
      ASSERT_NO_FATAL_FAILURE(rest());
      const double left = static_cast<double>(m_keys * kEntryBytes) * static_cast<double>(100 - percent) / 100;
      EXPECT_LE(static_cast<double>(m_env.allocated_bytes()), 1.85 * left + 7 * kMemtableBytes);
    }
  }
}

}  // namespace
}  // namespace vtkv
