// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys that live shorter than a memtable, as those of a PG log, and what of them reaches the disk.
#include <gtest/gtest.h>

#include <cstdio>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

constexpr uint64_t kLive = 100;
constexpr uint64_t kValueBytes = 120;

class ShortLivedTest : public TreeFixture {
 protected:
  void SetUp() override { make(); }
  static std::string key(uint64_t i) {
    char text[24];
    std::snprintf(text, sizeof text, "log%012llu", static_cast<unsigned long long>(i));
    return text;
  }
  void flush(const MemTable& table) {
    const Status status = m_tree->flush(table, {table.last_sequence(), 1, 1, 4096, 7}, m_snapshots);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  // Appends to a log and trims it behind the last kLive entries; bytes written to the tree per entry appended.
  double bytes_per_entry(uint64_t trim_every, bool by_range) {
    constexpr uint64_t kEntries = 100'000, kPerFlush = 20'000;
    const std::string value(kValueBytes, 'v');
    uint64_t trimmed = 0;
    for (uint64_t i = 0; i < kEntries;) {
      MemTable table;
      for (const uint64_t end = i + kPerFlush; i < end; ++i) {
        table.put(++m_sequence, key(i), value);
        if (i % trim_every != 0 || i < kLive) {
          continue;
        }
        if (by_range) {
          table.remove_range(++m_sequence, key(0), key(i - kLive));
          continue;
        }
        for (; trimmed < i - kLive; ++trimmed) {
          table.remove(++m_sequence, key(trimmed));
        }
      }
      flush(table);
    }
    return static_cast<double>(m_tree->statistics().flush_bytes) / kEntries;
  }

  std::vector<SequenceNumber> m_snapshots;
};

TEST_F(ShortLivedTest, PutAndRemovedInOneMemtableLeavesNothing) {
  MemTable table;
  for (uint64_t i = 0; i < 1000; ++i) {
    table.put(++m_sequence, key(i), "value");
    if (i % 2 == 0) {
      table.remove(++m_sequence, key(i));
    }
  }
  table.remove_range(++m_sequence, key(0), key(1000));
  flush(table);
  EXPECT_EQ(m_tree->statistics().runs, 0u);
  EXPECT_EQ(m_tree->statistics().flush_bytes, 0u);
}

TEST_F(ShortLivedTest, ATombstoneOfAKeyThatNoRunKnowsLeavesNothing) {
  MemTable known, table;
  known.put(++m_sequence, key(0), "value");
  known.put(++m_sequence, key(999), "value");
  flush(known);
  const uint64_t before = m_tree->statistics().flush_bytes;
  table.remove(++m_sequence, key(7));
  table.put(++m_sequence, key(8), "value");
  table.remove(++m_sequence, key(8));
  flush(table);
  EXPECT_EQ(m_tree->statistics().runs, 1u);
  EXPECT_EQ(m_tree->statistics().flush_bytes, before);
}

TEST_F(ShortLivedTest, AnOldSnapshotKeepsNoTombstonesOfKeysThatItNeverSaw) {
  MemTable table;
  table.put(++m_sequence, key(1), "seen");
  m_snapshots = {m_sequence};
  for (uint64_t i = 1; i < 1000; ++i) {
    table.put(++m_sequence, key(i), "value");
    table.remove(++m_sequence, key(i));
  }
  flush(table);
  EXPECT_EQ(m_tree->statistics().entries, 2u);  // what the snapshot sees, and its tombstone
  Lookup result;
  std::string value;
  ASSERT_TRUE(m_tree->current()->get(key(1), m_snapshots[0], &result, &value).ok());
  EXPECT_EQ(value, "seen");
  ASSERT_TRUE(m_tree->current()->get(key(1), m_sequence, &result, &value).ok());
  EXPECT_EQ(result, Lookup::removed);
}

TEST_F(ShortLivedTest, ALogTrimmedByKeyWritesNearlyNothing) { EXPECT_LT(bytes_per_entry(1, false), 3.0); }

TEST_F(ShortLivedTest, ALogTrimmedByRangeWritesNearlyNothing) { EXPECT_LT(bytes_per_entry(10, true), 3.0); }

TEST_F(ShortLivedTest, ALogTrimmedUnderAnOldSnapshotWritesNearlyNothing) {
  m_snapshots = {1};
  EXPECT_LT(bytes_per_entry(1, false), 3.0);
}

}  // namespace
}  // namespace vtkv
