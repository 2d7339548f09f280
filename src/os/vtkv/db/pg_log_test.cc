// SPDX-License-Identifier: LGPL-2.1-or-later
// Logs of PGs: keys are appended at the end and trimmed at the front, and what a memtable appends is trimmed in later
// ones. What of the trimmed keys takes space, and how long a scan looks for the first that is left. The figures are
// printed. VTKV_PG_LOG_ROUNDS: how many flushes (400).

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

constexpr int kLogs = 8;
constexpr uint64_t kValueBytes = 120;
constexpr int kOthers = 40'000;       // keys before and behind the logs, never changed

class PgLogTest : public testing::Test {
 protected:
  void SetUp() override {
    m_options.geometry = {.log_segment_bytes = 4 << 20, .initial_log_segments = 3, .zone_bytes = 1 << 20};
    m_options.block_cache_bytes = 0;
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
    WriteBatch batch;
    for (int i = 0; i < kOthers; ++i) {
      batch.put((i % 2 ? "k" : "m") + std::to_string(100'000 + i), std::string(kValueBytes, 'v'));
    }
    ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    ASSERT_TRUE(m_db->compact().ok());
    m_others_bytes = m_db->statistics().tree_live_bytes;
  }
  static std::string key(int log, uint64_t i) {
    char text[32];
    std::snprintf(text, sizeof text, "log%d.%012llu", log, static_cast<unsigned long long>(i));
    return text;
  }
  void round(bool by_range) {
    WriteBatch batch;
    const uint64_t trimmed = m_end > m_live ? m_end - m_live : 0;
    const uint64_t to = m_end + m_per_round > m_live ? m_end + m_per_round - m_live : 0;
    for (int log = 0; log < kLogs; ++log) {
      for (uint64_t i = m_end; i < m_end + m_per_round; ++i) {
        batch.put(key(log, i), std::string(kValueBytes, 'v'));
      }
      if (by_range && to > trimmed) {
        batch.remove_range(key(log, trimmed), key(log, to));
      }
      for (uint64_t i = trimmed; !by_range && i < to; ++i) {
        batch.remove(key(log, i));
      }
    }
    m_end += m_per_round;
    ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  // Blocks read until the first key of the log is found, for all logs.
  uint64_t reads_of_a_scan(double* us) {
    const uint64_t before = m_env.calls(SimCall::read);
    const auto start = std::chrono::steady_clock::now();
    for (int log = 0; log < kLogs; ++log) {
      const auto iterator = m_db->new_iterator(key(log, 0), key(log + 1, 0));
      iterator->seek_to_first();
      EXPECT_TRUE(iterator->valid());
      EXPECT_EQ(iterator->key(), key(log, m_end - m_live));
    }
    *us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kLogs;
    return m_env.calls(SimCall::read) - before;
  }
  void play(bool by_range, uint64_t live, uint64_t per_round) {
    m_live = live;
    m_per_round = per_round;
    const char* const wanted = std::getenv("VTKV_PG_LOG_ROUNDS");
    const int rounds = wanted ? std::atoi(wanted) : 400;
    uint64_t most_bytes = 0, most_entries = 0, most_reads = 0, entries = 0, samples = 0;
    double most_us = 0;
    for (int i = 1; i <= rounds; ++i) {
      ASSERT_NO_FATAL_FAILURE(round(by_range));
      if (i > 100 && i % 7 == 0) {
        const DBStatistics now = m_db->statistics();
        most_bytes = std::max(most_bytes, now.tree_live_bytes - m_others_bytes);
        most_entries = std::max(most_entries, now.tree_entries - kOthers);
        double us = 0;
        most_reads = std::max(most_reads, reads_of_a_scan(&us));
        most_us = std::max(most_us, us);
        entries += now.tree_entries - kOthers;
        ++samples;
      }
    }
    const DBStatistics now = m_db->statistics();
    ASSERT_TRUE(m_db->compact().ok());
    double compacted_us = 0;
    const uint64_t compacted_reads = reads_of_a_scan(&compacted_us);
    const auto live_entries = static_cast<double>(kLogs * m_live);
    std::printf(
        "%d rounds of %lu, %lu live, trimmed by %s: at most %.1f and in the mean %.1f entries in the tree for "
        "each that lives, %.1f bytes for each of theirs; first of a log at most %.1f reads, %.0f us (in one run "
        "%.1f, %.0f us); %.2f bytes compacted for each flushed; %lu purges, %u runs\n",
        rounds, m_per_round, m_live, by_range ? "range" : "key", double(most_entries) / live_entries,
        double(entries) / double(samples) / live_entries,
        double(most_bytes) / double(live_entries * (kValueBytes + 17)), double(most_reads) / kLogs, most_us,
        double(compacted_reads) / kLogs, compacted_us, double(now.compaction_bytes) / double(now.flush_bytes),
        now.purges, now.runs);
    EXPECT_LT(double(most_entries) / live_entries, 4.0);
    EXPECT_LT(most_reads, 32u * kLogs);
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
  uint64_t m_others_bytes = 0;
  uint64_t m_live = 0;       // of each log
  uint64_t m_per_round = 0;  // appended to each, and trimmed, between two flushes
  uint64_t m_end = 0;        // of each log
};

TEST_F(PgLogTest, TrimmedByRange) { play(true, 500, 25); }
TEST_F(PgLogTest, TrimmedByKey) { play(false, 500, 25); }
// Fewer at once than a purge is worth.
TEST_F(PgLogTest, TrimmedByRangeLittleByLittle) { play(true, 40, 2); }
TEST_F(PgLogTest, TrimmedByKeyLittleByLittle) { play(false, 40, 2); }

}  // namespace
}  // namespace vtkv
