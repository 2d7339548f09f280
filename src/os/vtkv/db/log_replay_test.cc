// SPDX-License-Identifier: LGPL-2.1-or-later
// A recovery of a log that holds more than a memtable takes.

#include "vtkv/db/log_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "vtkv/db.h"
#include "vtkv/mem/memtable_bound.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

// Counts batches: those of the checkpoint, and those that were replayed since.
class Counting final : public CheckpointParticipant {
 public:
  Status load(const TreeReader& tree) override {
    batches = 0;
    const auto found = tree("~count", "~count~");
    found->seek_to_first();
    if (found->valid()) {
      batches = std::stoul(std::string(found->value()));
    }
    return found->status();
  }
  Status replay(SequenceNumber, std::string_view) override {
    ++batches;
    ++replayed;
    return Status();
  }
  void collect(SequenceNumber, std::vector<CheckpointEntry>* entries) override {
    entries->push_back({"~count", std::to_string(batches)});
  }
  void checkpoint_durable(SequenceNumber) override {}
  uint64_t batches = 0;
  uint64_t replayed = 0;
};

class LogReplayTest : public testing::Test {
 protected:
  static constexpr int kBatches = 120;

  explicit LogReplayTest(bool record = false) : m_env(std::make_unique<SimEnv>(SimOptions{.record = record})) {
    m_options.geometry = {.log_segment_bytes = 256 << 10, .initial_log_segments = 4, .zone_bytes = 256 << 10};
    m_options.block_cache_bytes = 0;
    m_options.checkpoint_log_bytes = 1 << 30;
    m_options.compress_blocks = false;
  }
  // Some keys are overwritten, and some removed.
  void fill(size_t value_bytes) {
    ASSERT_TRUE(DB::create(m_env.get(), "/db", m_options).ok());
    m_options.memtable_bytes = 64 << 20;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(DB::open(m_env.get(), "/db", m_options, &db).ok());
    for (int i = 0; i < kBatches; ++i) {
      WriteBatch batch;
      const std::string removed = "key" + std::to_string(i * 7 % 100);
      batch.remove_range(removed, removed + "~");
      m_expected.erase(m_expected.lower_bound(removed), m_expected.lower_bound(removed + "~"));
      const std::string key = "key" + std::to_string(i % 200);
      batch.put(key, m_expected[key] = std::to_string(i) + std::string(value_bytes, 'v'));
      ASSERT_TRUE(db->write(std::move(batch), {.sync = i % 10 == 9}).ok());
    }
    db.reset();
    m_options.memtable_bytes = 16 << 10;
  }
  static Status open(SimEnv* env, const Options& options, std::unique_ptr<DB>* db) {
    return DB::open(env, "/db", options, db);
  }
  std::string differences(DB* db) const {
    std::map<std::string, std::string> found;
    const auto it = db->new_iterator("key", "key~");
    for (it->seek_to_first(); it->valid(); it->next()) {
      found.emplace(it->key(), it->value());
    }
    return !it->status().ok() ? it->status().to_string() : found == m_expected ? "" : "other keys or values";
  }

  std::unique_ptr<SimEnv> m_env;
  Options m_options;
  std::map<std::string, std::string> m_expected;
  std::unique_ptr<DB> m_db;
};

TEST_F(LogReplayTest, FullMemtablesAreInTheTreeWhenTheDatabaseIsOpen) {
  fill(5000);
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  const DBStatistics statistics = m_db->statistics();  // no worker has done anything yet
  EXPECT_GT(statistics.memtable_flushes, 8u);
  EXPECT_LE(statistics.memtable_bytes, memtables_bytes_most(m_options.memtable_bytes) / 2);
  EXPECT_EQ(differences(m_db.get()), "");
  m_env->advance(std::chrono::seconds(10));
  EXPECT_EQ(differences(m_db.get()), "");
  m_db.reset();
  Counting participant;
  m_options.participant = &participant;
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  EXPECT_LT(participant.replayed, 20u) << "what is in the tree is not read again";
}

// They lie in the log already.
TEST_F(LogReplayTest, ValuesThatStayInTheLogTakeNoMemory) {
  m_options.value_separation_bytes = 1000;
  fill(20000);
  m_options.memtable_bytes = 1 << 20;
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  EXPECT_EQ(m_db->statistics().memtable_flushes, 0u);
  EXPECT_LE(m_db->statistics().memtable_bytes, m_options.memtable_bytes);
  EXPECT_EQ(differences(m_db.get()), "");
  ASSERT_TRUE(m_db->flush().ok());
  EXPECT_EQ(differences(m_db.get()), "");
}

TEST_F(LogReplayTest, WithoutSpaceForTheTreeItStaysInMemory) {
  fill(5000);
  m_env->set_capacity(m_env->allocated_bytes());
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  EXPECT_EQ(m_db->statistics().memtable_flushes, 0u);
  EXPECT_EQ(differences(m_db.get()), "");
  m_env->set_capacity(uint64_t{1} << 40);
  ASSERT_TRUE(m_db->flush().ok());
  EXPECT_GT(m_db->statistics().memtable_flushes, 8u);
  EXPECT_LE(m_db->statistics().memtable_bytes, m_options.memtable_bytes);
  EXPECT_EQ(differences(m_db.get()), "");
}

// Its fragments are in one memtable, whatever that takes.
TEST_F(LogReplayTest, ABatchThatWasCutIsNotDivided) {
  fill(10);
  m_options.memtable_bytes = 64 << 20;
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  ASSERT_TRUE(m_db->flush().ok());
  WriteBatch large;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(1000 + i);
    large.put(key, m_expected[key] = std::string(5000, 'l'));
  }
  ASSERT_TRUE(m_db->write(large).ok());
  m_db.reset();
  m_options.memtable_bytes = 16 << 10;
  ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
  EXPECT_EQ(m_db->statistics().memtable_flushes, 1u);
  EXPECT_EQ(differences(m_db.get()), "");
}

class LogReplayCrashTest : public LogReplayTest {
 protected:
  LogReplayCrashTest() : LogReplayTest(true) {}
  // Opens it, and what each crash on the way leaves.
  void crash_while_it_opens() {
    Counting participant;
    m_options.participant = &participant;
    m_env->restart_trace();
    ASSERT_TRUE(open(m_env.get(), m_options, &m_db).ok());
    EXPECT_GT(m_db->statistics().memtable_flushes, 5u);
    CrashImages images(m_env->trace(), {.exhaustive_max = 4, .drop_two_max = 10, .samples = 10});
    uint64_t states = 0;
    uint64_t shorter = 0;  // of these, a part of the log had been in the tree
    for (CrashState state; images.next(&state); ++states) {
      const auto env = images.materialize(state);
      Counting other;
      m_options.participant = &other;
      std::unique_ptr<DB> db;
      const Status status = open(env.get(), m_options, &db);
      ASSERT_TRUE(status.ok()) << status.to_string() << "\n" << state.to_string();
      ASSERT_EQ(differences(db.get()), "") << state.to_string();
      // The record that ends a recovery holds one, too.
      ASSERT_GE(other.batches, participant.batches) << state.to_string();
      ASSERT_LE(other.batches, participant.batches + 1) << state.to_string();
      shorter += other.replayed < other.batches;
    }
    std::printf("%lu states, in %lu of them a part of the log was in the tree\n", states, shorter);
    EXPECT_GT(shorter, states / 10);
  }
};

TEST_F(LogReplayCrashTest, NoCrashInTheMiddleOfItLosesAnything) {
  fill(1500);
  crash_while_it_opens();
}

TEST_F(LogReplayCrashTest, NoCrashInTheMiddleOfItLosesValuesThatStayInTheLog) {
  m_options.value_separation_bytes = 1000;
  fill(1500);
  m_options.memtable_bytes = 4 << 10;
  crash_while_it_opens();
}

}  // namespace
}  // namespace vtkv
