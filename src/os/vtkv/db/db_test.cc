// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "vtkv/testing/db_fixture.h"

namespace vtkv {
namespace {

// The same tests in the simulator and on the host.
class DbTest : public DbFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DbFixture::SetUp());
    open();
  }
  void open() {
    m_db.reset();
    const Status status = DB::open(m_env, m_directory, m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void put(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.put(key, value);
    write(std::move(batch));
  }
  void write(WriteBatch batch) {
    const Status status = m_db->write(std::move(batch));
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  std::string get(const std::string& key, const Snapshot* snapshot = nullptr) {
    std::string value;
    const Status status = m_db->get(key, &value, snapshot);
    return status.ok() ? value : status.is_not_found() ? "none" : status.to_string();
  }
  std::string forward(const std::string& lower, const std::string& upper, const Snapshot* snapshot = nullptr) {
    std::string all;
    auto it = m_db->new_iterator(lower, upper, snapshot);
    for (it->seek_to_first(); it->valid(); it->next()) {
      all.append(it->key()).append("=").append(it->value()).append(" ");
    }
    EXPECT_TRUE(it->status().ok()) << it->status().to_string();
    return all;
  }
  std::string backward(const std::string& lower, const std::string& upper) {
    std::string all;
    auto it = m_db->new_iterator(lower, upper);
    for (it->seek_to_last(); it->valid(); it->previous()) {
      all.append(it->key()).append("=").append(it->value()).append(" ");
    }
    EXPECT_TRUE(it->status().ok()) << it->status().to_string();
    return all;
  }
};

TEST_P(DbTest, WhatWasWrittenIsReadBack) {
  put("a", "1");
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "none");
}

TEST_P(DbTest, ReopenRecoversFromTheLog) {
  put("a", "1");
  put("b", "2");
  open();
  EXPECT_EQ(forward("", "z"), "a=1 b=2 ");
  put("c", "3");
  open();
  EXPECT_EQ(forward("", "z"), "a=1 b=2 c=3 ");
}

TEST_P(DbTest, FlushMovesEverythingToTheTree) {
  put("a", "1");
  put("b", "2");
  ASSERT_TRUE(m_db->flush().ok());
  EXPECT_EQ(m_db->statistics().memtable_flushes, 1u);
  EXPECT_EQ(get("a"), "1");
  put("a", "3");
  open();
  EXPECT_EQ(forward("", "z"), "a=3 b=2 ");
  EXPECT_EQ(backward("", "z"), "b=2 a=3 ");
}

TEST_P(DbTest, LaterOperationOfABatchWins) {
  WriteBatch batch;
  batch.put("a", "1");
  batch.remove_range("a", "c");
  batch.put("b", "2");
  batch.put("d", "4");
  batch.remove("d");
  write(std::move(batch));
  EXPECT_EQ(forward("", "z"), "b=2 ");
  open();
  EXPECT_EQ(forward("", "z"), "b=2 ");
}

TEST_P(DbTest, RangeTombstoneHidesTheTree) {
  for (int i = 0; i < 10; ++i) {
    put("k" + std::to_string(i), std::to_string(i));
  }
  ASSERT_TRUE(m_db->flush().ok());
  WriteBatch batch;
  batch.remove_range("k2", "k8");
  write(std::move(batch));
  put("k5", "new");
  const std::string expected = "k0=0 k1=1 k5=new k8=8 k9=9 ";
  EXPECT_EQ(forward("", "z"), expected);
  EXPECT_EQ(backward("", "z"), "k9=9 k8=8 k5=new k1=1 k0=0 ");
  ASSERT_TRUE(m_db->flush().ok());
  EXPECT_EQ(forward("", "z"), expected);
  ASSERT_TRUE(m_db->compact().ok());
  EXPECT_EQ(forward("", "z"), expected);
  EXPECT_EQ(m_db->statistics().runs, 1u);
}

TEST_P(DbTest, SnapshotSurvivesFlushAndCompaction) {
  put("a", "old");
  put("b", "old");
  const Snapshot* snapshot = m_db->take_snapshot();
  put("a", "new");
  WriteBatch batch;
  batch.remove_range("b", "c");
  write(std::move(batch));
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->compact().ok());
  EXPECT_EQ(get("a", snapshot), "old");
  EXPECT_EQ(forward("", "z", snapshot), "a=old b=old ");
  EXPECT_EQ(forward("", "z"), "a=new ");
  m_db->release_snapshot(snapshot);
}

TEST_P(DbTest, LogIsRecycledWhileWritesGoOn) {
  for (int i = 0; i < 600; ++i) {
    put("key" + std::to_string(i % 50), std::string(200, static_cast<char>('a' + i % 26)));
  }
  ASSERT_TRUE(m_db->flush().ok());
  ASSERT_TRUE(m_db->flush().ok());
  const DBStatistics statistics = m_db->statistics();
  EXPECT_GT(statistics.memtable_flushes, 3u);
  EXPECT_GT(statistics.log_bytes, 10 * m_options.geometry.log_segment_bytes);
  EXPECT_LT(statistics.log_segments, 12u);
  open();
  for (int i = 550; i < 600; ++i) {
    EXPECT_EQ(get("key" + std::to_string(i % 50)), std::string(200, static_cast<char>('a' + i % 26)));
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
}

TEST_P(DbTest, BatchLargerThanASegmentGetsOneOfItsOwn) {
  const std::string large(3 * m_options.geometry.log_segment_bytes, 'x');
  put("large", large);
  put("small", "1");
  open();
  EXPECT_EQ(get("large"), large);
  EXPECT_EQ(get("small"), "1");
}

TEST_P(DbTest, HorizonReachesEverythingDurable) {
  put("a", "1");
  const SequenceNumber written = m_db->durable_sequence();
  EXPECT_LT(m_db->reuse_horizon(), written);
  m_db->advance_reuse_horizon();
  ASSERT_TRUE(m_db->wait_durable(written + 1).ok());
  EXPECT_GE(m_db->reuse_horizon(), written);
  // Nothing new: no record is written for it.
  m_db->advance_reuse_horizon();
  EXPECT_EQ(m_db->statistics().last_sequence, written + 1);
}

TEST_P(DbTest, SecondOpenIsBusy) {
  std::unique_ptr<DB> second;
  EXPECT_EQ(DB::open(m_env, m_directory, m_options, &second).code(), Status::Code::busy);
}

TEST_P(DbTest, CreateRefusesWhatIsThere) {
  m_db.reset();
  EXPECT_EQ(DB::create(m_env, m_directory, m_options).code(), Status::Code::invalid_argument);
  EXPECT_TRUE(DB::open(m_env, m_directory, m_options, &m_db).ok());
}

TEST_P(DbTest, OpenOfNothingIsNotFound) {
  std::unique_ptr<DB> other;
  EXPECT_TRUE(DB::open(m_env, m_base + "/none", m_options, &other).is_not_found());
}

TEST_P(DbTest, DefragmentsWhileItIsWrittenTo) {
  m_options.stitch_threshold_bytes = 0;
  m_options.memtable_bytes = 256 << 10;
  open();
  std::map<std::string, std::string> model;
  const auto fill = [&](int first, int step, char c) {
    WriteBatch batch;
    for (int i = first; i < 8000; i += step) {
      const std::string key = "key" + std::to_string(100000 + i);
      model[key] = std::string(100, c);
      batch.put(key, model[key]);
    }
    write(std::move(batch));
    ASSERT_TRUE(m_db->compact().ok());
  };
  fill(0, 1, 'a');
  for (int round = 0; round < 5; ++round) {
    fill(round * 60, 400, static_cast<char>('b' + round));
  }
  ASSERT_TRUE(m_db->flush().ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; GetParam() && !stop; ++i) {  // the simulator has one thread
      WriteBatch batch;
      batch.put("other" + std::to_string(i % 10), "value");
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
      const DefragmentReport report = m_db->defragment_report();
      ASSERT_LE(report.moved_bytes, 2 * report.chosen_bytes);
    }
  });
  const Status status = m_db->defragment({.gain_min = 0.2, .bytes_per_step = 64 << 10, .bytes_per_second = 0});
  stop = true;
  writer.join();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_GT(m_db->statistics().defragmented_bytes, 0u);
  for (const auto& [key, value] : model) {
    ASSERT_EQ(get(key), value);
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
}

// A seek to where the tombstone begins would read the first block of what it hides.
TEST_P(DbTest, ASeekIntoARemovedRangeLooksBehindIt) {
  for (int i = 0; i < 1000; ++i) {
    put("key" + std::to_string(1000 + i), std::string(100, 'v'));
  }
  ASSERT_TRUE(m_db->compact().ok());
  WriteBatch batch;
  batch.remove_range("key1200", "key1800");
  write(std::move(batch));
  put("key1500", "newer");
  const auto lookups = [this] {
    const DBStatistics statistics = m_db->statistics();
    return statistics.block_cache_hits + statistics.block_cache_misses;
  };
  const auto blocks_of = [&](const std::string& target) {
    const uint64_t before = lookups();
    auto it = m_db->new_iterator("", "z");
    it->seek(target);
    EXPECT_TRUE(it->valid());
    return lookups() - before;
  };
  const uint64_t behind = blocks_of("key1800");
  EXPECT_EQ(blocks_of("key1200"), behind);
  EXPECT_EQ(blocks_of("key1600"), behind);
  EXPECT_EQ(forward("key1199", "key1802").size(), 3 * 109 + std::string("key1500=newer ").size());
  auto it = m_db->new_iterator("", "z");
  it->seek("key1300");
  ASSERT_TRUE(it->valid());
  EXPECT_EQ(it->key(), "key1500");
  it->next();
  ASSERT_TRUE(it->valid());
  EXPECT_EQ(it->key(), "key1800");
  it->previous();
  ASSERT_TRUE(it->valid());
  EXPECT_EQ(it->key(), "key1500");
}

// No key is behind every other one.
TEST_P(DbTest, AnEmptyUpperBoundIsTheEndOfAllKeys) {
  const std::string last(100, '\xff');
  for (int round = 0; round < 2; ++round) {  // in the memtable, and in a run
    put("a", "first");
    put(std::string(64, '\xff') + "abc", "last but one");
    put(last, "last");
    std::string values;
    const auto it = m_db->new_iterator("", "");
    for (it->seek_to_first(); it->valid(); it->next()) {
      values.append(it->value()).append(" ");
    }
    EXPECT_EQ(values, "first last but one last ");
    values.clear();
    for (it->seek_to_last(); it->valid(); it->previous()) {
      values.append(it->value()).append(" ");
    }
    EXPECT_EQ(values, "last last but one first ");
    it->seek_for_previous(last + last);
    ASSERT_TRUE(it->valid());
    EXPECT_EQ(it->value(), "last");
    it->seek("b");
    ASSERT_TRUE(it->valid());
    EXPECT_EQ(it->value(), "last but one");
    ASSERT_TRUE(m_db->flush().ok());
  }
  EXPECT_EQ(forward("b", ""), std::string(64, '\xff') + "abc=last but one " + last + "=last ");
}

INSTANTIATE_TEST_SUITE_P(, DbTest, testing::Bool(), [](const auto& info) { return info.param ? "Host" : "Simulator"; });

}  // namespace
}  // namespace vtkv
