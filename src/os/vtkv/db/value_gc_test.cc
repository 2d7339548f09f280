// The collector of the value log, seen through the database.

#include "vtkv/db/value_gc.h"

#include <gtest/gtest.h>

#include <set>

#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

constexpr size_t kValueBytes = 3000;

class ValueGcTest : public ValuesFixture {
 protected:
  static std::string value(int i, char version) {
    return std::to_string(i) + std::string(kValueBytes, version);
  }
  void put(int first, int end, char version) {
    for (int i = first; i < end; ++i) {
      WriteBatch batch;
      batch.put(key(i), value(i, version));
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    }
  }
  void expect(int first, int end, char version, const Snapshot* snapshot = nullptr) {
    for (int i = first; i < end; ++i) {
      std::string found;
      const Status status = m_db->get(key(i), &found, snapshot);
      ASSERT_TRUE(status.ok()) << key(i) << ": " << status.to_string();
      ASSERT_EQ(found, value(i, version)) << key(i);
    }
  }
  void collect() {
    const Status status = m_db->collect_garbage(true);
    ASSERT_TRUE(status.ok()) << status.to_string();
    m_env.run_until_idle();
  }
  uint64_t values_looked_up(uint32_t lookup_cost);
  uint64_t log_bytes() { return m_db->statistics().log_file_bytes; }
};

TEST_F(ValueGcTest, GivesBackWhatWasOverwrittenAndKeepsTheRest) {
  put(0, 200, 'a');
  put(0, 150, 'b');
  ASSERT_NO_FATAL_FAILURE(collect());
  const uint64_t live = 200 * kValueBytes;
  EXPECT_LE(log_bytes(), live + live / 3 + 4 * m_options.geometry.log_segment_bytes);
  EXPECT_GT(m_db->statistics().gc_freed_segments, 5u);
  expect(0, 150, 'b');
  expect(150, 200, 'a');
  open();
  expect(0, 150, 'b');
  expect(150, 200, 'a');
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
}

TEST_F(ValueGcTest, ReadsNothingOfSegmentsWithoutPointers) {
  put(0, 100, 'a');
  put(0, 100, 'b');
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->compact().ok());
  m_env.run_until_idle();
  // Every value of the first round is dead and counted as such: no reading is asked for.
  const DBStatistics statistics = m_db->statistics();
  EXPECT_EQ(statistics.gc_moved_bytes, 0u);
  EXPECT_GT(statistics.gc_freed_segments, 2u);
  expect(0, 100, 'b');
}

TEST_F(ValueGcTest, ASnapshotKeepsItsValues) {
  put(0, 60, 'a');
  const Snapshot* snapshot = m_db->take_snapshot();
  put(0, 60, 'b');
  put(60, 200, 'a');  // other segments to use
  ASSERT_NO_FATAL_FAILURE(collect());
  put(200, 260, 'a');
  expect(0, 60, 'a', snapshot);
  const uint64_t held = m_db->statistics().gc_freed_segments;
  m_db->release_snapshot(snapshot);
  ASSERT_NO_FATAL_FAILURE(collect());
  EXPECT_GT(m_db->statistics().gc_freed_segments, held);
  expect(0, 60, 'b');
}

TEST_F(ValueGcTest, AnIteratorKeepsTheValuesAheadOfIt) {
  put(0, 60, 'a');
  ASSERT_TRUE(m_db->flush().ok());
  auto iterator = m_db->new_iterator("", "z");
  iterator->seek_to_first();
  put(0, 60, 'b');
  ASSERT_NO_FATAL_FAILURE(collect());
  put(60, 300, 'c');  // overwrites whatever was given back
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(iterator->valid()) << i << " " << iterator->status().to_string();
    ASSERT_EQ(iterator->value(), value(i, 'a'));
    iterator->next();
  }
}

TEST_F(ValueGcTest, ADamagedSegmentIsLeftAlone) {
  put(0, 100, 'a');
  put(0, 100, 'b');
  put(0, 40, 'c');
  ASSERT_TRUE(m_db->flush().ok());
  // In the middle of every segment; what lies there now is old or not.
  for (const std::string& path : m_env.files()) {
    if (path.ends_with(".log")) {
      m_env.flip_bits(path, 32 << 10, 0x20);
    }
  }
  const Status status = m_db->collect_garbage(true);
  EXPECT_TRUE(status.is_corruption()) << status.to_string();
  EXPECT_NE(status.message().find("not collected"), std::string::npos) << status.to_string();
  int readable = 0;
  for (int i = 0; i < 100; ++i) {
    std::string found;
    const Status read = m_db->get(key(i), &found);
    ASSERT_TRUE(read.ok() || read.is_corruption()) << read.to_string();
    if (read.ok()) {
      ASSERT_EQ(found, value(i, i < 40 ? 'c' : 'b'));
      ++readable;
    }
  }
  EXPECT_GT(readable, 85);
}

// A value in ten lives: these are read one by one. What died is not even looked at, be it damaged or not.
TEST_F(ValueGcTest, NothingIsReadOfDeadValuesAmongFewLiveOnes) {
  constexpr int kValues = 600;
  m_options.block_cache_bytes = 0;
  m_options.geometry.log_segment_bytes = 256 << 10;  // or the tree would be too large, compared with one
  m_db.reset();
  ASSERT_TRUE(DB::create(&m_env, "/large", m_options).ok());
  ASSERT_TRUE(DB::open(&m_env, "/large", m_options, &m_db).ok());
  put(0, kValues, 'a');
  ASSERT_TRUE(m_db->flush().ok());
  std::set<int> damaged;
  for (const std::string& path : m_env.files()) {
    if (!path.starts_with("/large") || !path.ends_with(".log")) {
      continue;
    }
    m_env.flip_bits(path, 4096 + 200, 0x20);  // in the first value of a segment
    std::string found;
    int i = 0;
    while (i < kValues && (damaged.contains(i) || m_db->get(key(i), &found).ok())) {
      ++i;
    }
    if (i < kValues - 100) {
      damaged.insert(i);
    } else {
      m_env.flip_bits(path, 4096 + 200, 0x20);  // still being filled
    }
  }
  ASSERT_GE(damaged.size(), 4u);
  const auto lives = [&](int i) { return i % 10 == 9 && !damaged.contains(i); };
  for (int i = 0; i < kValues; ++i) {
    if (!lives(i)) {
      put(i, i + 1, 'b');
    }
  }
  const uint64_t freed = m_db->statistics().gc_freed_segments;
  ASSERT_NO_FATAL_FAILURE(collect());
  EXPECT_GE(m_db->statistics().gc_freed_segments, freed + damaged.size());
  for (int i = 0; i < kValues; ++i) {
    expect(i, i + 1, lives(i) ? 'a' : 'b');
  }
}

// A database of its own, nine values in ten overwritten: how many a collection looks up.
uint64_t ValueGcTest::values_looked_up(uint32_t lookup_cost) {
  constexpr int kValues = 600;
  m_options.io_depth = 1;  // segments are read whole
  m_options.gc_lookup_cost_bytes = lookup_cost;
  m_db.reset();
  const std::string directory = "/cost" + std::to_string(lookup_cost);
  EXPECT_TRUE(DB::create(&m_env, directory, m_options).ok());
  EXPECT_TRUE(DB::open(&m_env, directory, m_options, &m_db).ok());
  const auto lives = [](int i) { return i % 10 == 9; };
  put(0, kValues, 'a');
  for (int i = 0; i < kValues; ++i) {
    if (!lives(i)) {
      put(i, i + 1, 'b');
    }
  }
  EXPECT_TRUE(m_db->flush().ok());
  EXPECT_TRUE(m_db->compact().ok());
  m_env.run_until_idle();
  const DBStatistics before = m_db->statistics();
  collect();
  const DBStatistics after = m_db->statistics();
  EXPECT_GT(after.gc_freed_segments, before.gc_freed_segments + 20);
  for (int i = 0; i < kValues; ++i) {
    expect(i, i + 1, lives(i) ? 'a' : 'b');
  }
  return after.gc_lookups - before.gc_lookups;
}

TEST_F(ValueGcTest, LooksUpWhatTheTreePointsToWhereThatIsCheaper) {
  const uint64_t sieved = values_looked_up(3 << 10);
  const uint64_t all = values_looked_up(0);
  EXPECT_GT(sieved, 50u);  // those that live
  EXPECT_LT(sieved + 500, all);
}

TEST_F(ValueGcTest, TheLogStaysWithinItsTarget) {
  m_options.space_amplification_target = 2.0;
  m_options.memtable_bytes = 64 << 10;
  open();
  for (int round = 0; round < 12; ++round) {
    put(0, 300, static_cast<char>('a' + round));
  }
  m_env.run_until_idle();
  const uint64_t live = 300 * kValueBytes;
  EXPECT_LE(log_bytes(), 2 * live + 16 * m_options.geometry.log_segment_bytes);
  expect(0, 300, 'l');
}

// A few segments are more than the target allows so small a database, and no collection changes that.
TEST_F(ValueGcTest, WhatLivesIsNotMovedInVain) {
  m_options.space_amplification_target = 2.0;
  open();
  put(0, 20, 'a');
  uint64_t written = 20 * kValueBytes;
  for (int round = 0; round < 30; ++round) {
    put(round % 2, round % 2 + 1, static_cast<char>('b' + round % 20));
    written += kValueBytes;
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  EXPECT_LE(m_db->statistics().gc_moved_bytes, 5 * written);
  expect(2, 20, 'a');
}

TEST_F(ValueGcTest, OverwrittenValuesCountBeforeAMergeMeetsThem) {
  m_options.space_amplification_target = 2.0;
  m_options.memtable_bytes = 1 << 20;
  m_options.checkpoint_log_bytes = 512 << 10;  // few flushes: too many runs would be merged all the same
  m_options.merging = false;
  open();
  for (int round = 0; round < 12; ++round) {
    put(0, 300, static_cast<char>('a' + round));
  }
  m_env.run_until_idle();
  EXPECT_EQ(m_db->statistics().merges, 0u);
  const uint64_t live = 300 * kValueBytes;
  EXPECT_LE(log_bytes(), 2 * live + 16 * m_options.geometry.log_segment_bytes);
  expect(0, 300, 'l');
}

TEST_F(ValueGcTest, AFullCollectionGivesBackFreeZones) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 1000; ++i) {
      WriteBatch batch;
      batch.put(key(i), std::string(90, static_cast<char>('a' + round)));  // into the tree
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
    }
    ASSERT_TRUE(m_db->flush().ok());
  }
  const auto outside_the_log = [this] { return m_env.allocated_bytes() - log_bytes(); };
  m_env.run_until_idle();
  const uint64_t before = outside_the_log();
  ASSERT_NO_FATAL_FAILURE(collect());
  EXPECT_LE(outside_the_log() + 5 * m_options.geometry.zone_bytes, before);
}

}  // namespace
}  // namespace vtkv
