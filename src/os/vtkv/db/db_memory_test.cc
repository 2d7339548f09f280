// SPDX-License-Identifier: LGPL-2.1-or-later
// What memtables take together has a bound, however far writers are ahead of the tree.

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "vtkv/db.h"
#include "vtkv/env/env_wrapper.h"
#include "vtkv/mem/memtable_bound.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

// The tree's device takes nothing for a while: what it is asked to reserve gets `answer`, unless that is ok.
class StuckTreeEnv final : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) override {
    VTKV_RETURN_IF_ERROR(m_base->open_file(path, options, file));
    if (path.ends_with("/tree")) {
      *file = std::make_unique<TreeFile>(std::move(*file), &answer);
    }
    return Status();
  }

  Status answer;

 private:
  class TreeFile final : public File {
   public:
    TreeFile(std::unique_ptr<File> base, const Status* answer) : m_base(std::move(base)), m_answer(*answer) {}
    const std::string& path() const override { return m_base->path(); }
    Status read(uint64_t offset, size_t length, char* to) override { return m_base->read(offset, length, to); }
    Status write(uint64_t offset, const char* from, size_t length) override {
      return m_answer.ok() ? m_base->write(offset, from, length) : m_answer;
    }
    Status sync() override { return m_base->sync(); }
    Status size(uint64_t* bytes) override { return m_base->size(bytes); }
    Status truncate(uint64_t bytes) override { return m_base->truncate(bytes); }
    Status allocate(uint64_t offset, uint64_t length) override {
      return m_answer.ok() ? m_base->allocate(offset, length) : m_answer;
    }
    Status write_zeros(uint64_t offset, uint64_t length) override { return m_base->write_zeros(offset, length); }
    Status punch_hole(uint64_t offset, uint64_t length) override { return m_base->punch_hole(offset, length); }
    Status map_space(FileSpace* space) override { return m_base->map_space(space); }

   private:
    const std::unique_ptr<File> m_base;
    const Status& m_answer;
  };
};

class DbMemoryTest : public testing::Test {
 protected:
  // One who does not wait, and has one batch under way.
  struct Writer final : Submission {
    void durable(const Status& status) override {
      is_under_way = false;
      result = status;
    }
    bool is_under_way = false;
    Status result;
  };

  explicit DbMemoryTest(bool interleaved = false) : m_sim({.record = false, .interleaved = interleaved}) {
    m_options.geometry = {.log_segment_bytes = 1 << 20, .initial_log_segments = 64, .zone_bytes = 256 << 10};
    m_options.memtable_bytes = 1 << 20;
    m_options.checkpoint_log_bytes = 1 << 30;
    m_options.block_cache_bytes = 0;
  }
  void open() {
    if (!m_env.exists("/db")) {
      ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    }
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
    m_sim.set_step_observer([this] { after_step(); });
  }
  void TearDown() override { m_sim.set_step_observer(nullptr); }

  // Flushes find no space from here on, until so many steps of workers have gone by, or for good; then `then` is
  // called.
  void stick(uint64_t steps = UINT64_MAX, std::function<void()> then = nullptr) {
    m_env.answer = Status::from_errno(ENOSPC, "the tree's device");
    m_steps_left = steps;
    m_then = then ? std::move(then) : [this] { m_env.answer = Status(); };
  }
  void after_step() {
    check();
    if (m_steps_left > 0 && m_steps_left != UINT64_MAX && --m_steps_left == 0) {
      m_then();
    }
  }
  void check() {
    m_peak = std::max(m_peak, m_db->statistics().memtable_bytes);
    if (!HasFailure()) {  // once will do
      EXPECT_LE(m_peak, memtables_bytes_most(m_options.memtable_bytes));
    }
  }

  WriteBatch next_batch(size_t value_bytes, int operations = 1) {
    WriteBatch batch;
    for (int i = 0; i < operations; ++i) {
      batch.put("key" + std::to_string(m_random() % m_keys), std::string(value_bytes, 'a' + static_cast<char>(i % 26)));
    }
    return batch;
  }
  Status write(WriteBatch batch, bool sync = false) { return m_db->write(std::move(batch), {.sync = sync}); }
  // Two writers that never wait, each with one batch under way; one that waits for memory and one that waits for the
  // log, too.
  void write_with_four(int rounds, size_t value_bytes, int sync_every = 0) {
    std::deque<Writer> ahead(2);
    for (int i = 0; i < rounds; ++i) {
      for (Writer& writer : ahead) {
        if (!writer.is_under_way) {
          writer.is_under_way = true;
          writer.batch = next_batch(value_bytes, 4);
          m_db->submit(&writer);
          check();
        }
      }
      ASSERT_TRUE(write(next_batch(value_bytes, 4)).ok());
      check();
      if (sync_every > 0 && i % sync_every == 0) {
        ASSERT_TRUE(write(next_batch(value_bytes), /*sync=*/true).ok());
        check();
      }
    }
    m_env.answer = Status();
    ASSERT_TRUE(m_db->wait_durable(m_db->statistics().last_sequence).ok());
    for (const Writer& writer : ahead) {
      ASSERT_FALSE(writer.is_under_way);
      ASSERT_TRUE(writer.result.ok()) << writer.result.to_string();
    }
  }

  SimEnv m_sim;
  StuckTreeEnv m_env{&m_sim};
  Options m_options;
  std::mt19937_64 m_random{1};
  uint64_t m_keys = 1 << 20;
  uint64_t m_steps_left = 0;
  std::function<void()> m_then;
  uint64_t m_peak = 0;
  std::unique_ptr<DB> m_db;
};

TEST_F(DbMemoryTest, WritersAheadOfASlowTreeStayWithinTheBound) {
  open();
  for (int pause = 0; pause < 3; ++pause) {
    stick(2000);
    write_with_four(4000, 100, pause == 0 ? 200 : 0);
  }
  EXPECT_GT(m_peak, 2 * m_options.memtable_bytes);
  EXPECT_GT(m_db->statistics().write_waits, 0u);
}

TEST_F(DbMemoryTest, SmallKeysAreCountedWithWhatTheyTakeInMemory) {
  open();
  stick(2000);
  write_with_four(20000, 0);
  EXPECT_GT(m_peak, 2 * m_options.memtable_bytes);
}

// Values that stay in the log, which the collector moves.
TEST_F(DbMemoryTest, TheCollectorStaysWithinTheBound) {
  m_options.value_separation_bytes = 64;
  m_options.geometry.initial_log_segments = 8;
  m_keys = 4000;
  open();
  for (int pause = 0; pause < 2; ++pause) {
    stick(1000);
    write_with_four(1200, 400);
  }
  EXPECT_GT(m_peak, 2 * m_options.memtable_bytes);
  EXPECT_GT(m_db->statistics().gc_moved_bytes, 0u);
}

TEST_F(DbMemoryTest, RangeDeletesStayWithinTheBound) {
  m_options.memtable_bytes = 256 << 10;
  open();
  stick(1000);
  for (int i = 0; i < 8000; ++i) {
    WriteBatch batch;
    const std::string begin = "key" + std::to_string(m_random() % m_keys);
    batch.remove_range(begin, begin + "~");
    ASSERT_TRUE(write(std::move(batch)).ok());
    check();
  }
  EXPECT_GT(m_peak, 2 * m_options.memtable_bytes);
}

// Sixteen who never wait, each with one batch under way: they are held by that.
TEST_F(DbMemoryTest, WhoBoundsWhatIsUnderWayIsWithinTheBound) {
  open();
  stick();
  std::deque<Writer> writers(16);
  uint64_t submitted = 0;
  for (uint64_t before = 1; submitted != before && !HasFailure();) {
    before = submitted;
    for (Writer& writer : writers) {
      if (!writer.is_under_way) {
        writer.is_under_way = true;
        writer.batch = next_batch(1000, 10);
        m_db->submit(&writer);
        ++submitted;
        check();
      }
    }
    m_sim.advance(std::chrono::milliseconds(10));
  }
  EXPECT_GT(m_peak, 2 * m_options.memtable_bytes);
  m_env.answer = Status();
  m_sim.advance(std::chrono::seconds(10));
  for (const Writer& writer : writers) {
    EXPECT_FALSE(writer.is_under_way);
  }
}

TEST_F(DbMemoryTest, WhatIsHeldIsFlushedOnRequest) {
  open();
  stick(500);
  write_with_four(2000, 100);
  ASSERT_TRUE(m_db->flush().ok());
  EXPECT_LT(m_db->statistics().memtable_bytes, m_options.memtable_bytes);
}

// One that would be beyond the bound by itself.
TEST_F(DbMemoryTest, ABatchLargerThanTheBoundGoesAlone) {
  m_options.memtable_bytes = 64 << 10;
  open();
  ASSERT_TRUE(write(next_batch(100, 100)).ok());
  m_sim.set_step_observer(nullptr);
  const WriteBatch large = next_batch(1000, 8000);
  for (const bool sync : {false, true}) {
    const uint64_t flushes = m_db->statistics().memtable_flushes;
    ASSERT_TRUE(write(large, sync).ok());
    EXPECT_GT(m_db->statistics().memtable_flushes, flushes) << "what was there went first";
    const uint64_t taken = m_db->statistics().memtable_bytes;
    EXPECT_LT(taken, 2 * large.encoded_bytes());
  }
}

TEST_F(DbMemoryTest, AnErrorOfTheTreeEndsTheWait) {
  open();
  stick(3000, [this] { m_env.answer = Status::from_errno(EIO, "the tree's device"); });
  Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) {
    status = write(next_batch(100));
  }
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.to_string().find("the tree's device"), std::string::npos) << status.to_string();
  m_sim.set_step_observer(nullptr);
}

TEST_F(DbMemoryTest, WhoWaitsWhileTheBackgroundStopsGoesOn) {
  open();
  uint64_t written = 0;
  bool stopped = false;
  stick(3000, [&] {
    m_db->stop_background();
    stopped = true;
    m_sim.set_step_observer(nullptr);
  });
  while (!stopped) {
    ASSERT_TRUE(write(next_batch(100)).ok());
    ++written;
  }
  m_db.reset();
  m_env.answer = Status();
  open();
  EXPECT_EQ(m_db->statistics().last_sequence, written + 2);  // two records that ended recoveries
}

// The tree takes nothing, and what was submitted is made durable all the same.
TEST_F(DbMemoryTest, WhatIsHeldIsDurableWhenTheDatabaseIsClosed) {
  open();
  stick();
  std::deque<Writer> writers;
  while (m_db->statistics().memtable_bytes < memtables_bytes_crowded(m_options.memtable_bytes) + (100 << 10)) {
    Writer& writer = writers.emplace_back();
    writer.is_under_way = true;
    writer.batch = next_batch(1000);
    m_db->submit(&writer);
  }
  m_sim.run_until_idle();
  EXPECT_FALSE(writers.front().is_under_way);
  EXPECT_TRUE(writers.back().is_under_way) << "it waits for memory";
  m_sim.set_step_observer(nullptr);
  m_db.reset();
  for (const Writer& writer : writers) {
    EXPECT_FALSE(writer.is_under_way);
    EXPECT_TRUE(writer.result.ok());
  }
}

}  // namespace
}  // namespace vtkv
