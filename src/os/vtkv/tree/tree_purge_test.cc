// Stretches of removals, and what merges make of them by themselves.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

constexpr int kKeys = 20000;
constexpr int kMiddle = 8000, kEnd = 12000;

std::string key_of(int number) { return "key" + std::to_string(100000 + number); }

class TreePurgeTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.geometry.zone_bytes = 1 << 20;
    m_options.runs_per_level = m_options.growth_factor = 8;  // nothing else is due
    make();
    flush_each(0, kKeys, 1, [this](MemTable* table, const std::string& key) {
      table->put(m_sequence, key, std::string(100, 'v'));
    });
  }
  void flush(const MemTable& table) {
    const Status status = m_tree->flush(table, {m_sequence, 1, 1, m_sequence * 4096, 7}, m_snapshots);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  // One memtable with what `change` makes of every `step`-th key in [first, end).
  void flush_each(int first, int end, int step, const std::function<void(MemTable*, const std::string&)>& change) {
    MemTable table;
    for (int i = first; i < end; i += step) {
      ++m_sequence;
      change(&table, key_of(i));
    }
    flush(table);
  }
  void remove_each(int first, int end, int step = 1) {
    flush_each(first, end, step, [this](MemTable* table, const std::string& key) { table->remove(m_sequence, key); });
  }
  // Until nothing is due.
  void merge() {
    for (bool did = true; did;) {
      ASSERT_TRUE(m_tree->merge_once(m_snapshots, &did).ok());
      ASSERT_LT(m_tree->statistics().merges + m_tree->statistics().purges, 100u) << "it does not end";
    }
    std::vector<std::string> findings;
    m_tree->verify(&findings);
    EXPECT_EQ(findings, std::vector<std::string>());
  }
  bool holds(int number, SequenceNumber at_most = UINT64_MAX) {
    Lookup result;
    std::string value;
    EXPECT_TRUE(m_tree->current()->get(key_of(number), at_most, &result, &value).ok());
    return result == Lookup::found;
  }
  void expect_keys(const std::function<bool(int)>& wanted, SequenceNumber at_most = UINT64_MAX) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(holds(i, at_most), wanted(i)) << key_of(i);
    }
  }

  std::vector<SequenceNumber> m_snapshots;
};

TEST_F(TreePurgeTest, KeysRemovedOneByOneLeaveNothingBehind) {
  remove_each(kMiddle, kEnd);
  merge();
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
  EXPECT_GE(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd; };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, WhatLiesOutsideTheStretchIsNotWritten) {
  const uint64_t bytes = m_tree->statistics().live_bytes;
  remove_each(kMiddle, kEnd);
  merge();
  EXPECT_LT(m_tree->statistics().merge_bytes, bytes / 50);
}

TEST_F(TreePurgeTest, RemovalsScatteredOverMuchElseWait) {
  remove_each(0, kKeys, 40);
  merge();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int i) { return i % 40 != 0; });
}

// As a merge of the flushes that removed a stretch leaves them: in one part with what was changed here and there around it.
TEST_F(TreePurgeTest, RemovalsBesideScatteredChangesGo) {
  flush_each(0, kKeys, 1, [this](MemTable* table, const std::string& key) {
    if (key >= key_of(kMiddle) && key < key_of(kEnd)) {
      table->remove(m_sequence, key);
    } else if (m_sequence % 5 == 0) {
      table->put(m_sequence, key, "changed");
    }
  });
  merge();
  EXPECT_EQ(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd; };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, WhatWasPutAgainInBetweenSurvives) {
  remove_each(kMiddle, kEnd);
  flush_each(kMiddle, kEnd, 10, [this](MemTable* table, const std::string& key) {
    table->put(m_sequence, key, "again");
  });
  remove_each(kMiddle, kEnd, 20);
  merge();
  EXPECT_GE(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd || (i % 10 == 0 && i % 20 != 0); };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, ASnapshotKeepsWhatItSeesAndThePurgeWaits) {
  m_snapshots = {m_sequence};
  remove_each(kMiddle, kEnd);
  merge();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int) { return true; }, m_snapshots[0]);
  m_snapshots.clear();
  merge();
  EXPECT_GE(m_tree->statistics().purges, 1u);
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
}

// A range removal that came to lie in front of an entry that it does not hide would hide it.
TEST_F(TreePurgeTest, ARangeRemovalHidesOnlyWhatIsOlder) {
  MemTable table;
  m_sequence += 1;
  table.remove_range(m_sequence, key_of(kMiddle), key_of(kMiddle + 100));
  flush(table);
  flush_each(kMiddle, kEnd, 10, [this](MemTable* newer, const std::string& key) {
    newer->put(m_sequence, key, "again");
  });
  remove_each(kMiddle, kEnd, 20);
  merge();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int i) {
    return i < kMiddle || i >= kEnd || (i % 10 == 0 && i % 20 != 0) || (i >= kMiddle + 100 && i % 20 != 0);
  });
}

TEST_F(TreePurgeTest, TheOldestRunAloneIsPurgedToo) {
  m_snapshots = {m_sequence};
  remove_each(kMiddle, kEnd);
  ASSERT_TRUE(m_tree->merge_all(m_snapshots).ok());
  ASSERT_GE(m_tree->statistics().entries, uint64_t{kKeys + kEnd - kMiddle});
  m_snapshots.clear();
  merge();
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
  expect_keys([](int i) { return i < kMiddle || i >= kEnd; });
}

}  // namespace
}  // namespace vtkv
