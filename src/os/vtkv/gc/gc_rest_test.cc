// SPDX-License-Identifier: LGPL-2.1-or-later
// When does the collector of the value log stop, and how large may it leave the log?

#include <gtest/gtest.h>

#include <random>

#include "vtkv/testing/at_rest.h"
#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

class GcRestTest : public ValuesFixture {
 protected:
  GcRestTest() {
    m_options.value_separation_bytes = 64;
    m_options.space_amplification_target = 2.0;
    m_options.memtable_bytes = 64 << 10;
  }
  std::string long_key(int i) const {
    const std::string number = std::to_string(100000 + i);
    return number + std::string(m_key_bytes - number.size(), 'k');
  }
  void put(int i, char version) {
    WriteBatch batch;
    batch.put(long_key(i), std::string(m_value_bytes, version));
    ASSERT_TRUE(m_db->write(std::move(batch), {.sync = m_synced}).ok());
  }
  void put_all(char version) {
    for (int i = 0; i < m_keys; ++i) {
      ASSERT_NO_FATAL_FAILURE(put(i, version));
    }
  }
  // Of all keys about this part, in no order.
  void overwrite(double part, char version) {
    for (int i = 0; i < static_cast<int>(part * m_keys); ++i) {
      ASSERT_NO_FATAL_FAILURE(put(static_cast<int>(m_random() % static_cast<unsigned>(m_keys)), version));
    }
  }
  uint64_t log_bytes() const { return m_db->statistics().log_file_bytes; }
  uint64_t live_bytes() const { return static_cast<uint64_t>(m_keys) * (m_key_bytes + m_value_bytes); }

  std::mt19937 m_random{1};
  int m_keys = 8000;
  size_t m_key_bytes = 40;
  size_t m_value_bytes = 100;
  bool m_synced = false;
};

// What a relocated value takes in the log is its key, too: segments full of such are not half empty.
TEST_F(GcRestTest, ValuesThatAreSmallBesideTheirKeysAreMovedOnce) {
  open();
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  ASSERT_NO_FATAL_FAILURE(overwrite(1, 'b'));
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  const DBStatistics statistics = m_db->statistics();
  EXPECT_GT(statistics.gc_freed_segments, 0u);
  EXPECT_LE(statistics.gc_moved_bytes, 2 * live_bytes());
}

// A segment takes three of these values and is three quarters full with them: moving them makes nothing smaller.
TEST_F(GcRestTest, ValuesThatFillSegmentsBadlyAreNotMovedForEver) {
  m_db.reset();
  m_options.geometry.log_segment_bytes = 16 << 10;
  m_options.space_amplification_target = 1.2;
  m_keys = 150;
  m_value_bytes = 3000;
  ASSERT_TRUE(DB::create(&m_env, "/badly", m_options).ok());
  ASSERT_TRUE(DB::open(&m_env, "/badly", m_options, &m_db).ok());
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  ASSERT_NO_FATAL_FAILURE(overwrite(0.5, 'b'));
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  EXPECT_GT(m_db->statistics().gc_moved_bytes, 0u);
  // And what dies afterwards is collected all the same.
  const uint64_t freed = m_db->statistics().gc_freed_segments;
  for (int round = 0; round < 6; ++round) {
    ASSERT_NO_FATAL_FAILURE(overwrite(1, 'c'));
  }
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  EXPECT_GT(m_db->statistics().gc_freed_segments, freed + 50);
  EXPECT_LE(log_bytes(), 3 * live_bytes());
}

// What a range delete hides has no record of its own for each key.
TEST_F(GcRestTest, ARangeDeleteFreesTheLogAsSingleRemovesDo) {
  uint64_t bytes[2];
  for (const bool by_range : {false, true}) {
    m_db.reset();
    const std::string directory = by_range ? "/range" : "/single";
    ASSERT_TRUE(DB::create(&m_env, directory, m_options).ok());
    ASSERT_TRUE(DB::open(&m_env, directory, m_options, &m_db).ok());
    m_keys = 2000;
    m_value_bytes = 3000;
    ASSERT_NO_FATAL_FAILURE(put_all('a'));
    const int kept = m_keys / 10;
    WriteBatch range;
    range.remove_range(long_key(kept), "z");
    if (by_range) {
      ASSERT_TRUE(m_db->write(std::move(range)).ok());
    }
    for (int i = kept; i < m_keys && !by_range; ++i) {
      WriteBatch batch;
      batch.remove(long_key(i));
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
    }
    ASSERT_TRUE(m_db->flush().ok());
    EXPECT_EQ(unrest(&m_env, *m_db), "");
    bytes[by_range] = log_bytes();
  }
  EXPECT_LE(bytes[true], bytes[false] + bytes[false] / 4);
  EXPECT_LE(bytes[true], live_bytes() / 4);
}

// Neither one by one nor as a range: nobody else would flush them.
TEST_F(GcRestTest, WhatTheMemtableAloneDeletesIsFreedWhenItIsIdle) {
  m_options.memtable_bytes = 4 << 20;
  m_options.checkpoint_log_bytes = 32 << 20;
  open();
  m_keys = 2000;
  m_value_bytes = 3000;
  for (const bool by_range : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(put_all('a'));
    ASSERT_TRUE(m_db->flush().ok());
    for (int i = 0; i < m_keys && !by_range; ++i) {
      WriteBatch batch;
      batch.remove(long_key(i));
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
    }
    if (by_range) {
      WriteBatch batch;
      batch.remove_range("", "z");
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    }
    open();  // what was recovered counts as well
    EXPECT_EQ(unrest(&m_env, *m_db), "");
    EXPECT_LE(log_bytes(), live_bytes() / 4);
  }
}

// A memtable that would free little stays where it is.
TEST_F(GcRestTest, AnIdleMemtableIsNotFlushedForLittle) {
  m_options.memtable_bytes = 4 << 20;
  m_options.checkpoint_log_bytes = 32 << 20;
  open();
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  ASSERT_TRUE(m_db->flush().ok());
  const uint64_t flushes = m_db->statistics().memtable_flushes;
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(put(i, 'b'));
  }
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  EXPECT_EQ(m_db->statistics().memtable_flushes, flushes);
}

// Nothing is given back while a snapshot leads to what was emptied.
TEST_F(GcRestTest, ASnapshotDoesNotHaveTheCollectorEnlargeTheLog) {
  open();
  m_value_bytes = 400;
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  m_env.run_until_idle();
  const Snapshot* snapshot = m_db->take_snapshot();
  const uint64_t before = m_db->statistics().gc_moved_bytes;
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(overwrite(0.5, 'b'));
    EXPECT_EQ(unrest(&m_env, *m_db), "");
  }
  EXPECT_LE(m_db->statistics().gc_moved_bytes, before + live_bytes() / 4);
  const uint64_t held = log_bytes();
  m_db->release_snapshot(snapshot);
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  EXPECT_LT(log_bytes(), held * 2 / 3);
}

// Nor while an iterator does.
TEST_F(GcRestTest, AnIteratorDoesNotHaveTheCollectorEnlargeTheLog) {
  open();
  m_value_bytes = 400;
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  m_env.run_until_idle();
  auto iterator = m_db->new_iterator("", "z");
  const uint64_t before = m_db->statistics().gc_moved_bytes;
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(overwrite(0.5, 'b'));
    EXPECT_EQ(unrest(&m_env, *m_db), "");
  }
  EXPECT_LE(m_db->statistics().gc_moved_bytes, before + live_bytes() / 3);
  const uint64_t held = log_bytes();
  iterator.reset();
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  EXPECT_LT(log_bytes(), held * 2 / 3);
}

}  // namespace
}  // namespace vtkv
