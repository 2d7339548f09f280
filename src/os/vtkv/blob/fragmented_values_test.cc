// SPDX-License-Identifier: LGPL-2.1-or-later
// Scans relocate what is fragmented over the log, and undo nothing.

#include "vtkv/blob/fragmented_values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "vtkv/testing/mutations.h"
#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

class FragmentedValuesTest : public ValuesFixture {
 protected:
  explicit FragmentedValuesTest(uint64_t log_segment_bytes = 256 << 10) : ValuesFixture(log_segment_bytes) {}

  void reopen() {
    open();
    m_env.run_until_idle();
  }
  static std::string value(int i, size_t bytes, char letter = 'v') {
    return std::to_string(i) + std::string(bytes, letter);
  }
  // Neighbours in the order of the keys are 21 values apart in the log.
  void put_fragmented(size_t bytes) {
    for (int i = 0; i < kKeys; ++i) {
      const int number = i * kStride % kKeys;
      put(number, value(number, bytes));
    }
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  void put(int number, const std::string& what) {
    WriteBatch batch;
    batch.put(key(number), what);
    ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  }
  // Returns the bytes that it relocated.
  uint64_t scan(int keys, size_t bytes, const Snapshot* snapshot = nullptr) {
    const uint64_t before = moved();
    {
      const auto it = m_db->new_iterator("", "z", snapshot);
      it->seek_to_first();
      for (int i = 0; i < keys; ++i, it->next()) {
        EXPECT_TRUE(it->valid()) << it->status().to_string();
        EXPECT_EQ(it->value(), value(i, bytes));
      }
    }
    m_env.run_until_idle();
    return moved() - before;
  }
  uint64_t moved() const { return m_db->statistics().scan_moved_bytes; }

  static constexpr int kKeys = 100;
  static constexpr int kStride = 81;  // its inverse is 21
};

TEST_F(FragmentedValuesTest, TheSecondScanFindsThemTogether) {
  put_fragmented(1000);
  EXPECT_GT(scan(kKeys, 1000), kKeys * 1000u * 9 / 10);  // not those before it ran ahead
  EXPECT_EQ(scan(kKeys, 1000), 0u);
  ASSERT_TRUE(m_db->flush().ok());
  reopen();
  EXPECT_EQ(scan(kKeys, 1000), 0u);
}

TEST_F(FragmentedValuesTest, WhatFollowsInOrderStaysWhereItIs) {
  for (int i = 0; i < kKeys; ++i) {
    put(i, value(i, 1000));
  }
  ASSERT_TRUE(m_db->flush().ok());
  m_env.run_until_idle();
  EXPECT_EQ(scan(kKeys, 1000), 0u);
}

TEST_F(FragmentedValuesTest, ManyShortScansHaveTheSameEffectAsALongerOne) {
  put_fragmented(1000);
  for (int i = 0; i < 40; ++i) {
    scan(20, 1000);  // until scans are known to be long enough, the first entries are not among it
  }
  EXPECT_EQ(scan(20, 1000), 0u);
  EXPECT_GE(moved(), 20 * 1000u);
}

// Room for more than is relocated at once.
class LargerSegments : public FragmentedValuesTest {
 protected:
  LargerSegments() : FragmentedValuesTest(4 << 20) {}
};

TEST_F(LargerSegments, ValuesOfSeveralBlocksAreFoundTogetherAsWell) {
  put_fragmented(16000);
  EXPECT_GT(scan(kKeys, 16000), kKeys * 16000u * 9 / 10);
  EXPECT_EQ(scan(kKeys, 16000), 0u);
}

TEST_F(LargerSegments, LargeValuesStayWhereTheyAre) {
  put_fragmented(17 << 10);
  EXPECT_EQ(scan(kKeys, 17 << 10), 0u);
}

TEST_F(FragmentedValuesTest, ReadingWritesNothingWhereThatIsForbidden) {
  put_fragmented(1000);
  m_options.fragmented_values_min = 0;
  reopen();
  EXPECT_EQ(scan(kKeys, 1000), 0u);
}

TEST_F(FragmentedValuesTest, AScanOfASnapshotMovesNothing) {
  put_fragmented(1000);
  const Snapshot* snapshot = m_db->take_snapshot();
  EXPECT_EQ(scan(kKeys, 1000, snapshot), 0u);
  m_db->release_snapshot(snapshot);
}

TEST_F(FragmentedValuesTest, SpaceThatIsShortIsLeftToWriters) {
  put_fragmented(2000);
  m_env.set_capacity(m_env.allocated_bytes());
  uint64_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    bytes += scan(kKeys, 2000);
  }
  EXPECT_LT(bytes, kKeys * 2000u * 3 / 4);
  put(0, value(0, 2000));
  m_env.set_capacity(uint64_t{1} << 40);
  m_env.advance(std::chrono::seconds(10));  // segments that could not be made ahead are tried again
  EXPECT_GT(scan(kKeys, 2000), 0u);
}

// What a scan hands over when it ends was gathered before.
class Meanwhile : public FragmentedValuesTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      VTKV_NEEDS_MUTATIONS();
      m_broken.emplace(Mutation::relocation_wins);
    }
    FragmentedValuesTest::SetUp();
  }
  template <typename Change>
  void change_during_scan(Change change) {
    put_fragmented(1000);
    {
      const auto it = m_db->new_iterator("", "z");
      it->seek_to_first();
      for (int i = 0; i < 20; ++i) {
        it->next();
      }
      change();
    }
    m_env.run_until_idle();
  }

 private:
  std::optional<ScopedMutation> m_broken;
};

TEST_P(Meanwhile, APutIsNotUndone) {
  constexpr int kPut = 15;  // no reason for a flush
  change_during_scan([this] {
    for (int i = 0; i < kPut; ++i) {
      put(i, value(i, 1000, 'w'));
    }
  });
  int newer = 0;
  for (int i = 0; i < kPut; ++i) {
    std::string found;
    ASSERT_TRUE(m_db->get(key(i), &found).ok());
    newer += found == value(i, 1000, 'w');
  }
  EXPECT_EQ(newer < kPut, GetParam());
}

TEST_P(Meanwhile, ATombstoneOfARangeIsNotUndone) {
  change_during_scan([this] {
    WriteBatch batch;
    batch.remove_range("", "z");
    ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  });
  const auto it = m_db->new_iterator("", "z");
  it->seek_to_first();
  EXPECT_EQ(it->valid(), GetParam());
}

TEST_P(Meanwhile, WhatAFlushHasTakenFromTheMemtableIsNotUndone) {
  change_during_scan([this] {
    for (int i = 0; i < kKeys; ++i) {
      put(i, value(i, 1000, 'w'));
    }
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  });
  for (int i = 0; i < kKeys; ++i) {
    std::string found;
    ASSERT_TRUE(m_db->get(key(i), &found).ok());
    ASSERT_EQ(found, value(i, 1000, 'w'));
  }
}

INSTANTIATE_TEST_SUITE_P(TheRuleIsKeptOrBroken, Meanwhile, testing::Bool());

}  // namespace
}  // namespace vtkv
