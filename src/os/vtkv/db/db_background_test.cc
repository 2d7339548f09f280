// SPDX-License-Identifier: LGPL-2.1-or-later
// Work in the background that fails: it is told, counted, tried again, and over when its cause is. And work under way
// when the database is closed.

#include <gtest/gtest.h>

#include <functional>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

class DbBackgroundTest : public testing::Test {
 protected:
  explicit DbBackgroundTest(bool interleaved = false) : m_env({.record = false, .interleaved = interleaved}) {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 4, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 1 << 20;
    m_options.growth_factor = m_options.runs_per_level = 2;
    m_options.block_cache_bytes = 0;
    m_options.on_background_error = [this](const BackgroundError& error) { m_told.push_back(error); };
    m_options.on_fatal = [this](const Status& status) { m_fatal = status; };
  }
  void open() {
    if (!m_env.exists("/db")) {
      ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    }
    reopen();
    m_env.run_until_idle();
  }
  // Its workers have done nothing yet.
  void reopen() {
    m_db.reset();
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void reopen_to_compact() {
    m_options.auto_compaction = true;
    reopen();
  }
  static std::string key(int i) { return "key" + std::to_string(10000 + i); }
  void put(int first, int count, size_t value_bytes = 100) {
    for (int i = first; i < first + count; ++i) {
      WriteBatch batch;
      batch.put(key(i), std::string(value_bytes, 'a' + i % 26));
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = i + 1 == first + count}).ok());
    }
  }
  // So many runs of the same keys.
  void flush_runs(int runs, int count) {
    for (int round = 0; round < runs; ++round) {
      put(0, count);
      ASSERT_TRUE(m_db->flush().ok());
    }
    m_env.run_until_idle();
  }
  std::string read(int i) {
    std::string value;
    const Status status = m_db->get(key(i), &value);
    return status.ok() ? value.substr(0, 1) : status.to_string();
  }

  SimEnv m_env;
  Options m_options;
  std::vector<BackgroundError> m_told;
  Status m_fatal;
  std::unique_ptr<DB> m_db;
};

TEST_F(DbBackgroundTest, AFlushWithoutSpaceIsToldOnceAndGoesOnByItself) {
  open();
  put(0, 20);
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_TRUE(m_db->flush().is_no_space());
  m_env.advance(std::chrono::seconds(30));
  ASSERT_EQ(m_told.size(), 1u);
  EXPECT_EQ(m_told[0].work, &kFlushWork);
  EXPECT_TRUE(m_told[0].status.is_no_space());
  ASSERT_EQ(m_db->background_errors().size(), 1u);
  EXPECT_GT(m_db->background_errors()[0].attempts, 5u);
  EXPECT_LT(m_db->background_errors()[0].attempts, 20u);  // with longer and longer pauses
  EXPECT_EQ(m_db->statistics().background_failing, 1u);
  EXPECT_EQ(m_db->statistics().memtable_flushes, 0u);
  m_env.set_capacity(uint64_t{1} << 40);
  m_env.advance(std::chrono::seconds(6));
  EXPECT_EQ(m_db->statistics().memtable_flushes, 1u);
  EXPECT_TRUE(m_db->background_errors().empty());
  EXPECT_EQ(m_db->statistics().background_failing, 0u);
  EXPECT_GT(m_db->statistics().background_failures, 5u);
  ASSERT_EQ(m_told.size(), 2u);
  EXPECT_TRUE(m_told[1].status.ok());
  EXPECT_TRUE(m_fatal.ok());
}

TEST_F(DbBackgroundTest, ACompactionWithoutSpaceGoesOnByItself) {
  m_options.auto_compaction = false;
  open();
  flush_runs(4, 200);
  reopen_to_compact();
  m_env.fail_nth(SimCall::allocate, 1, Status::from_errno(ENOSPC, "injected"), true);
  m_env.advance(std::chrono::seconds(10));
  ASSERT_EQ(m_told.size(), 1u);
  EXPECT_EQ(m_told[0].work, &kCompactionWork);
  EXPECT_EQ(m_db->statistics().compactions, 0u);
  m_env.clear_faults();
  m_env.advance(std::chrono::seconds(6));
  EXPECT_GT(m_db->statistics().compactions, 0u);
  EXPECT_TRUE(m_db->background_errors().empty());
  EXPECT_EQ(m_told.size(), 2u);
}

// What cannot be read is quarantined: it slows nobody, and other compactions go on.
TEST_F(DbBackgroundTest, ADamagedBlockStopsItsCompactionOnly) {
  m_options.auto_compaction = false;
  m_options.memtable_bytes = 8 << 10;  // the measure of the debt
  m_options.checkpoint_log_bytes = 1 << 30;
  m_options.geometry.log_segment_bytes = 1 << 20;
  open();
  flush_runs(2, 300);
  reopen_to_compact();
  m_env.fail_nth(SimCall::read, 1, Status::from_errno(EIO, "bad sector"), true);
  m_env.run_until_idle();
  m_env.advance(std::chrono::milliseconds(50));
  ASSERT_EQ(m_told.size(), 1u);
  EXPECT_EQ(m_told[0].work, &kCompactionWork);
  EXPECT_EQ(m_db->statistics().compaction_debt_bytes, 0u);
  EXPECT_TRUE(m_fatal.ok());
  m_env.clear_faults();
  m_env.advance(std::chrono::seconds(300));
  EXPECT_TRUE(m_db->background_errors().empty());
  EXPECT_GT(m_db->statistics().compactions, 0u);
  EXPECT_EQ(m_told.size(), 2u);
}

TEST_F(DbBackgroundTest, AManifestThatCannotBeWrittenEndsTheDatabaseAtOnce) {
  m_options.auto_compaction = false;
  open();
  flush_runs(4, 200);
  reopen_to_compact();
  m_env.fail_nth(SimCall::sync, 2, Status::from_errno(ENOSPC, "injected"), false);  // as final as any
  m_env.run_until_idle();
  EXPECT_FALSE(m_fatal.ok());
}

// What a close does of work under way, against what that work takes in all.
class DbClosingTest : public DbBackgroundTest {
 protected:
  DbClosingTest() : DbBackgroundTest(true) {
    m_options.geometry = {.log_segment_bytes = 1 << 20, .initial_log_segments = 16, .zone_bytes = 256 << 10};
    m_options.memtable_bytes = 64 << 20;
    m_options.checkpoint_log_bytes = 1 << 30;
    m_options.auto_compaction = false;
    m_options.stitch_threshold_bytes = kNeverStitch;
    m_options.compress_blocks = false;  // all values look alike: hardly anything would be written
  }
  uint64_t io() const {
    uint64_t calls = 0;
    for (const SimCall call : {SimCall::read, SimCall::write, SimCall::allocate, SimCall::sync}) {
      calls += m_env.calls(call);
    }
    return calls;
  }
  void fill(int runs) {
    for (int run = 0; run < runs; ++run) {
      put(0, 2000, 1000);
      ASSERT_TRUE(m_db->flush().ok());
    }
    m_env.run_until_idle();
  }
  void reopen_to_stay() {
    m_options.auto_compaction = false;
    reopen();
  }
  // `prepare` leaves the same each time, after `begin` the work is due.
  void close_in(const std::function<void()>& prepare, const std::function<void()>& begin) {
    open();
    prepare();
    begin();
    uint64_t before = io();
    m_env.advance(std::chrono::seconds(1));
    const uint64_t whole = io() - before;
    ASSERT_GT(whole, 50u);

    prepare();
    begin();
    before = io();
    const auto signal = m_env.new_signal();
    Mutex lock;
    {
      MutexLock waiting(lock);
      signal->wait(waiting, [&] { return io() >= before + whole / 10; });
    }
    before = io();
    m_db.reset();
    std::printf("%lu calls in all, %lu when it is closed after a tenth\n", whole, io() - before);
    EXPECT_LT(io() - before, whole / 4);
    open();
    EXPECT_EQ(read(77), "z");
  }
};

TEST_F(DbClosingTest, ALargeCompactionIsGivenUp) {
  close_in([&] { reopen_to_stay(), fill(4); }, [&] { reopen_to_compact(); });
}

// Nothing is copied, but every key is read.
TEST_F(DbClosingTest, ACompactionThatReadsKeysForItsFilterIsGivenUp) {
  m_options.stitch_threshold_bytes = 0;
  int first = 0;
  close_in(
      [&] {
        m_options.filter_false_positive_rate = 0.008;
        reopen_to_stay();
        for (int run = 0; run < 4; ++run, first += 2000) {
          put(first, 2000, 1000);
          ASSERT_TRUE(m_db->flush().ok());
        }
        m_options.filter_false_positive_rate = 1e-6;
      },
      [&] { reopen_to_compact(); });
}

TEST_F(DbClosingTest, ALargeFlushIsGivenUp) {
  close_in([&] { put(0, 5000, 1000); }, [&] { m_db->request_checkpoint(); });
}

}  // namespace
}  // namespace vtkv
