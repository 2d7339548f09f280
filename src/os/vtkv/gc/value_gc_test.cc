// SPDX-License-Identifier: LGPL-2.1-or-later
// The collector of the value log, seen through the database.

#include "vtkv/gc/value_gc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

constexpr size_t kValueBytes = 3000;

class ValueGcTest : public ValuesFixture {
 protected:
  static std::string value(int i, char version) { return std::to_string(i) + std::string(kValueBytes, version); }
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

TEST_F(ValueGcTest, FilesAreGoneWhenAFullCollectionReturns) {
  put(0, 400, 'a');
  put(0, 390, 'b');
  ASSERT_TRUE(m_db->collect_garbage(true).ok());
  const uint64_t at_return = log_bytes();
  m_env.advance(std::chrono::minutes(1));
  EXPECT_EQ(log_bytes(), at_return);
  expect(0, 390, 'b');
}

TEST_F(ValueGcTest, AFullCollectionSaysWhenAFileCannotBeRemoved) {
  put(0, 400, 'a');
  put(0, 390, 'b');
  m_env.run_until_idle();
  m_env.fail_nth(SimCall::remove, 1, Status::from_errno(EIO, "injected"), true);
  EXPECT_EQ(m_db->collect_garbage(true).code(), Status::Code::io_error);
  m_env.clear_faults();
  ASSERT_TRUE(m_db->collect_garbage(true).ok());
  const uint64_t at_return = log_bytes();
  m_env.advance(std::chrono::minutes(1));
  EXPECT_EQ(log_bytes(), at_return);
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

// Nobody knows which segments an unreadable block of the tree points to; but whose values it may know is found out one
// by one. The others are emptied, and these when the block can be read again.
class ValueGcDamageTest : public ValueGcTest, public testing::WithParamInterface<unsigned> {
 protected:
  static constexpr int kValues = 1500;
  static bool lives(int i) { return i % 10 == 9; }

  void SetUp() override {
    m_options.io_depth = GetParam();
    m_options.block_cache_bytes = 0;
    m_options.on_background_error = [this](const BackgroundError& error) {
      if (error.work == &kCollectWork) {  // compactions meet the block as well
        m_told.push_back(error);
      }
    };
    ASSERT_NO_FATAL_FAILURE(ValueGcTest::SetUp());
    put(0, kValues, 'a');
    for (int i = 0; i < kValues; ++i) {
      if (!lives(i)) {
        put(i, i + 1, 'b');
      }
    }
    ASSERT_TRUE(m_db->flush().ok());
    ASSERT_TRUE(m_db->compact().ok());
    m_env.run_until_idle();
  }
  int unreadable_keys() {
    int keys = 0;
    for (int i = 0; i < kValues; ++i) {
      std::string found;
      keys += m_db->get(key(i), &found).ok() ? 0 : 1;
    }
    return keys;
  }
  // One block of the tree with pointers, in the middle of it. Returns how many keys it holds.
  int damage_a_block() {
    int keys = 0;
    for (uint64_t block = 20; block < 400; ++block) {
      m_env.set_bad(SimBad::reads, "/db/tree", block * 4096, (block + 1) * 4096);
      keys = unreadable_keys();
      if (keys > 10 && keys < kValues / 5) {
        break;
      }
      m_env.clear_faults();
    }
    return keys;
  }

  bool collecting_fails() const {
    const std::vector<BackgroundError> errors = m_db->background_errors();
    return std::any_of(errors.begin(), errors.end(),
                       [](const BackgroundError& error) { return error.work == &kCollectWork; });
  }

  std::vector<BackgroundError> m_told;  // of collecting
};

TEST_P(ValueGcDamageTest, AnUnreadableTreeBlockQuarantinesFewSegments) {
  const int keys = damage_a_block();
  ASSERT_GT(keys, 10);
  ASSERT_LT(keys, kValues / 5);
  const uint64_t candidates = m_db->statistics().log_segments;
  const uint64_t before = m_db->statistics().gc_freed_segments;
  EXPECT_FALSE(m_db->collect_garbage(true).ok());
  ASSERT_TRUE(m_db->flush().ok());
  m_env.run_until_idle();
  const uint64_t freed = m_db->statistics().gc_freed_segments - before;
  EXPECT_GE(freed, candidates * 3 / 4);
  EXPECT_LT(freed, candidates);
  EXPECT_EQ(unreadable_keys(), keys);
  EXPECT_EQ(m_told.size(), 1u);
  EXPECT_TRUE(collecting_fails());

  m_env.clear_faults();
  m_env.advance(SegmentQuarantine::kFirstPause);
  EXPECT_FALSE(collecting_fails());
  ASSERT_EQ(m_told.size(), 2u);
  EXPECT_TRUE(m_told.back().status.ok());
  ASSERT_TRUE(m_db->flush().ok());
  m_env.run_until_idle();
  EXPECT_GT(m_db->statistics().gc_freed_segments - before, freed);
  for (int i = 0; i < kValues; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect(i, i + 1, lives(i) ? 'a' : 'b'));
  }
}

TEST_P(ValueGcDamageTest, WhatIsQuarantinedIsTriedAgainLessAndLessOften) {
  ASSERT_GT(damage_a_block(), 10);
  EXPECT_FALSE(m_db->collect_garbage(true).ok());
  const auto lookups_in = [this](int hours) {
    const uint64_t before = m_db->statistics().gc_lookups;
    m_env.advance(std::chrono::hours(hours));
    return m_db->statistics().gc_lookups - before;
  };
  const uint64_t first = lookups_in(1);
  EXPECT_GT(first, 0u);
  (void)lookups_in(1);
  EXPECT_GT(lookups_in(1), 0u);
  EXPECT_LT(lookups_in(1), first / 3);
  EXPECT_EQ(m_told.size(), 1u);
}

// What may fail again gives nothing back, and takes long where the disk tries for seconds.
TEST_F(ValueGcTest, WhatIsQuarantinedComesAfterNewCandidates) {
  std::vector<uint64_t> moved;  // bytes, when a failure was told
  m_options.on_background_error = [&](const BackgroundError& error) {
    if (error.work == &kCollectWork) {
      moved.push_back(m_db->statistics().gc_moved_bytes);
    }
  };
  open();
  const auto put_half_dead = [this](int first) {
    put(first, first + 200, 'a');
    for (int i = first; i < first + 200; i += 2) {
      put(i, i + 1, 'b');
    }
  };
  put_half_dead(0);
  ASSERT_TRUE(m_db->flush().ok());
  const std::string path = "/db/log/000002.log";
  m_env.flip_bits(path, 32 << 10, 0x20);
  EXPECT_TRUE(m_db->collect_garbage(true).is_corruption());
  ASSERT_EQ(moved.size(), 1u);
  put_half_dead(200);
  m_env.set_bad(SimBad::reads, path, 0, 64 << 10);
  const uint64_t before = m_db->statistics().gc_moved_bytes;
  EXPECT_EQ(m_db->collect_garbage(true).code(), Status::Code::io_error);
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_GT(moved.back(), before);
  m_env.clear_faults();
}

// Each look at its clock takes seconds.
class SlowEnv final : public SimEnv {
 public:
  SlowEnv() : SimEnv({.record = false}) {}
  uint64_t now_us() override { return SimEnv::now_us() + (m_passed_us += m_step_us); }
  void set_step(std::chrono::microseconds step) { m_step_us = static_cast<uint64_t>(step.count()); }

 private:
  uint64_t m_passed_us = 0, m_step_us = 0;
};

// While one is read, others become due again.
TEST_F(ValueGcTest, AFullCollectionTriesWhatIsQuarantinedOnce) {
  m_db.reset();
  SlowEnv env;
  ASSERT_TRUE(DB::create(&env, "/db", m_options).ok());
  ASSERT_TRUE(DB::open(&env, "/db", m_options, &m_db).ok());
  put(0, 400, 'a');
  for (int i = 0; i < 400; i += 2) {
    put(i, i + 1, 'b');
  }
  ASSERT_TRUE(m_db->flush().ok());
  uint64_t segments = 0;
  for (const std::string& path : env.files()) {
    if (path.ends_with(".log")) {
      env.set_bad(SimBad::reads, path, 0, 64 << 10);
      ++segments;
    }
  }
  EXPECT_FALSE(m_db->collect_garbage(true).ok());
  const uint64_t first = m_db->statistics().background_failures;
  EXPECT_GT(first, segments / 4);
  env.set_step(std::chrono::seconds(2));
  EXPECT_FALSE(m_db->collect_garbage(true).ok());
  env.set_step(std::chrono::seconds(0));
  EXPECT_LE(m_db->statistics().background_failures - first, first);
  env.clear_faults();
  m_db.reset();
}

// Read whole, all at once, or one by one (gc_plan.h).
INSTANTIATE_TEST_SUITE_P(Ways, ValueGcDamageTest, testing::Values(1, 128));

TEST_F(ValueGcTest, ADamagedSegmentWithoutPointersIsFreed) {
  std::vector<BackgroundError> told;
  m_options.on_background_error = [&](const BackgroundError& error) { told.push_back(error); };
  m_options.io_depth = 1;
  m_options.gc_lookup_cost_bytes = 0;  // read whole
  open();
  put(0, 100, 'a');
  put(0, 90, 'b');
  ASSERT_TRUE(m_db->flush().ok());
  for (const std::string& path : m_env.files()) {
    if (path.ends_with(".log")) {
      m_env.flip_bits(path, 32 << 10, 0x20);
    }
  }
  EXPECT_TRUE(m_db->collect_garbage(true).is_corruption());
  EXPECT_EQ(told.size(), 1u);
  put(0, 100, 'c');
  put(100, 200, 'c');  // so that the checkpoint leaves the segments
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->compact().ok());
  m_env.run_until_idle();
  EXPECT_EQ(m_db->statistics().background_failing, 0u);
  EXPECT_EQ(told.size(), 2u);
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
  const uint64_t index_filtered = values_looked_up(3 << 10);
  const uint64_t all = values_looked_up(0);
  EXPECT_GT(index_filtered, 50u);  // those that live
  EXPECT_LT(index_filtered + 500, all);
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

TEST_F(ValueGcTest, OverwrittenValuesCountBeforeACompactionMeetsThem) {
  m_options.space_amplification_target = 2.0;
  m_options.memtable_bytes = 1 << 20;
  m_options.checkpoint_log_bytes = 512 << 10;  // few flushes: too many runs would be compacted all the same
  m_options.auto_compaction = false;
  open();
  for (int round = 0; round < 12; ++round) {
    put(0, 300, static_cast<char>('a' + round));
  }
  m_env.run_until_idle();
  EXPECT_EQ(m_db->statistics().compactions, 0u);
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
  EXPECT_LE(outside_the_log() + 3 * m_options.geometry.zone_bytes, before);
}

}  // namespace
}  // namespace vtkv
