// SPDX-License-Identifier: LGPL-2.1-or-later
// Many threads on the host: batches are atomic for every reader, whatever flushes and compactions go on.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "vtkv/db.h"

namespace vtkv {
namespace {

class DbThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "db_threads_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    m_base = std::filesystem::absolute(name);
    m_options.geometry = {.log_segment_bytes = 256 << 10, .initial_log_segments = 3, .zone_bytes = 128 << 10};
    m_options.memtable_bytes = 32 << 10;
    m_options.value_separation_bytes = 64;
    m_options.fragmented_values_min = 1;
    ASSERT_TRUE(DB::create(posix_env(), m_base + "/db", m_options).ok());
    ASSERT_TRUE(DB::open(posix_env(), m_base + "/db", m_options, &m_db).ok());
  }
  void TearDown() override {
    m_db.reset();
    std::filesystem::remove_all(m_base);
  }
  // Both halves of a writer's pair get the same number, in one batch.
  void write_pairs(int writer, int count) {
    for (int i = 1; i <= count; ++i) {
      WriteBatch batch;
      const std::string name = std::to_string(writer);
      batch.remove_range("pair" + name, "pair" + name + "~");
      batch.put("pair" + name + "a", std::to_string(i));
      batch.put("pair" + name + "b", std::to_string(i));
      batch.put("big" + name, std::string(200, 'b') + std::to_string(i));  // stays in the log
      batch.put("fill" + std::to_string(writer * 100000 + i), std::string(100, 'f'));
      const Status status = m_db->write(std::move(batch), {.sync = i % 2 == 0});
      if (!status.ok()) {
        ADD_FAILURE() << status.to_string();
        return;
      }
      // Only this thread writes it: a value that comes back was put by the collector, or a scan.
      std::string big;
      const Status read = m_db->get("big" + name, &big);
      ASSERT_TRUE(read.ok()) << read.to_string();
      ASSERT_EQ(big, std::string(200, 'b') + std::to_string(i));
    }
  }
  void read_pairs(const std::atomic<bool>& stop) {
    while (!stop.load()) {
      const Snapshot* snapshot = m_db->take_snapshot();
      for (int writer = 0; writer < kWriters; ++writer) {
        const std::string name = "pair" + std::to_string(writer);
        std::string a = "0";
        std::string b = "0";
        (void)m_db->get(name + "a", &a, snapshot);
        (void)m_db->get(name + "b", &b, snapshot);
        EXPECT_EQ(a, b);
        std::string values;
        auto it = m_db->new_iterator(name, name + "~", snapshot);
        for (it->seek_to_first(); it->valid(); it->next()) {
          values.append(it->value()).append(" ");
        }
        EXPECT_EQ(values, a == "0" ? "" : a + " " + b + " ");
      }
      m_db->release_snapshot(snapshot);
    }
  }

  // Short scans, which relocate what they find fragmented.
  void scan(const std::atomic<bool>& stop) {
    for (size_t steps = 0; !stop.load(); steps = (steps + 7) % 60) {
      auto it = m_db->new_iterator("big", "g");
      it->seek_to_first();
      for (size_t i = 0; i < steps && it->valid(); ++i) {
        it->next();
      }
      EXPECT_TRUE(it->status().ok()) << it->status().to_string();
    }
  }

  static constexpr int kWriters = 3;
  std::string m_base;
  Options m_options;
  std::unique_ptr<DB> m_db;
};

// Mostly as much is unwritten as may be: room that one of them waited for, another one takes.
TEST_F(DbThreadsTest, WritersAheadOfTheLogWaitAndGoOn) {
  constexpr int kManyWriters = 12;
  m_db.reset();
  m_options.memtable_bytes = m_options.checkpoint_log_bytes = 2 << 20;
  ASSERT_TRUE(DB::open(posix_env(), m_base + "/db", m_options, &m_db).ok());
  std::vector<std::thread> writers;
  for (int i = 0; i < kManyWriters; ++i) {
    writers.emplace_back([this, i] {
      for (int number = 0; number < 250; ++number) {
        WriteBatch batch;
        batch.put(std::to_string(i) + " " + std::to_string(number % 5), std::string(150000, 'v'));
        const Status status = m_db->write(std::move(batch), {.sync = false});
        ASSERT_TRUE(status.ok()) << status.to_string();
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_GT(m_db->statistics().write_waits, 0u);
}

TEST_F(DbThreadsTest, BatchesAreAtomicUnderFlushAndCompaction) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  std::vector<std::thread> others;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] { write_pairs(i, 400); });
  }
  others.emplace_back([&] { read_pairs(stop); });
  others.emplace_back([&] { scan(stop); });
  others.emplace_back([&] {
    for (int i = 0; !stop.load(); ++i) {
      EXPECT_TRUE(i % 4 == 0 ? m_db->compact().ok() : m_db->flush().ok());
      const Status collected = m_db->collect_garbage(i % 3 == 0);
      EXPECT_TRUE(collected.ok()) << collected.to_string();
      std::vector<std::string> findings;
      m_db->verify(&findings);
      EXPECT_TRUE(findings.empty()) << findings.front();
    }
  });
  for (std::thread& writer : writers) {
    writer.join();
  }
  stop.store(true);
  RecordProperty("scan_moved_bytes", std::to_string(m_db->statistics().scan_moved_bytes));
  EXPECT_GT(m_db->statistics().scan_moved_bytes, 0u);
  for (std::thread& other : others) {
    other.join();
  }
  m_db.reset();
  ASSERT_TRUE(DB::open(posix_env(), m_base + "/db", m_options, &m_db).ok());
  for (int writer = 0; writer < kWriters; ++writer) {
    std::string value;
    ASSERT_TRUE(m_db->get("pair" + std::to_string(writer) + "b", &value).ok());
    EXPECT_EQ(value, "400");
  }
}

// They look at memtables that a flush is about to drop.
TEST_F(DbThreadsTest, StatisticsCanBeAskedForWhileMemtablesComeAndGo) {
  std::atomic<bool> stop{false};
  std::thread writer([this] { write_pairs(0, 300); });
  std::thread flusher([&] {
    while (!stop.load()) {
      EXPECT_TRUE(m_db->flush().ok());
    }
  });
  std::thread asker([&] {
    while (!stop.load()) {
      EXPECT_GT(m_db->statistics().memtable_bytes, 0u);
    }
  });
  writer.join();
  stop.store(true);
  flusher.join();
  asker.join();
}

}  // namespace
}  // namespace vtkv
