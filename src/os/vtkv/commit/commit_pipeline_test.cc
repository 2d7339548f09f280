// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "vtkv/db.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class Write final : public Submission {
 public:
  void durable(const Status& status) override { ended = status.ok(); }
  bool ended = false;
};

class RelaxedWrite final : public Submission {
 public:
  explicit RelaxedWrite(const std::string& key = "key") {
    relaxed = true;
    batch.put(key, "value");
  }
  void written() override {
    EXPECT_FALSE(is_written || ended);
    is_written = true;
  }
  void durable(const Status& status) override {
    EXPECT_TRUE(is_written || !status.ok());
    ended = status.ok();
  }
  bool is_written = false;
  bool ended = false;
};

class CommitPipelineTest : public testing::Test {
 protected:
  void SetUp() override {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
    m_buffer.append("data");
    m_buffer.pad();
  }
  std::unique_ptr<File> new_file(const std::string& path) {
    std::unique_ptr<File> file;
    EXPECT_TRUE(m_env.open_file(path, {.create = true}, &file).ok());
    return file;
  }
  ExternalData data_at(File* file, uint64_t offset) {
    return {.file = file, .offset = offset, .buffers = {{m_buffer.data(), m_buffer.size()}}};
  }

  SimEnv m_env{{}};
  Options m_options;
  AlignedBuffer m_buffer;
  std::unique_ptr<DB> m_db;
};

class NullObserver final : public CommitObserver {
 public:
  void commit_advanced() override {}
  std::chrono::microseconds throttle_delay() override { return {}; }
  bool memtables_are_crowded() override { return false; }
};

// A compaction of a database that is being opened may meet a failed sync.
TEST(CommitPipelineStartTest, AFailureBeforeTheStartEndsIt) {
  SimEnv env{{}};
  const Uuid uuid{1};
  SegmentPool pool(&env, "/log", {.log_segment_bytes = 64 << 10, .initial_log_segments = 2}, uuid);
  ASSERT_TRUE(pool.create().ok());
  Status failure;
  Options options;
  options.on_fatal = [&failure](const Status& status) { failure = status; };
  NullObserver observer;
  CommitPipeline pipeline(&env, options, &pool, uuid, {0, 1, 1, kLogBlockBytes, 0}, 0, &observer);
  pipeline.fail(Status::failed("a sync"));
  pipeline.start();
  env.run_until_idle();
  EXPECT_FALSE(failure.ok());
  pipeline.stop();
}

// --- relaxed submissions ---

TEST_F(CommitPipelineTest, ARelaxedWriteIsToldBeforeItIsDurable) {
  m_env.run_until_idle();
  const uint64_t syncs = m_env.calls(SimCall::sync);
  RelaxedWrite write;
  m_db->submit(&write);
  m_env.run_until_idle();
  EXPECT_TRUE(write.is_written);
  EXPECT_FALSE(write.ended);
  EXPECT_EQ(m_env.calls(SimCall::sync), syncs) << "nobody waits for a flush";
  m_env.advance(Submission::kRelaxedDelay);
  EXPECT_TRUE(write.ended) << "but it does not stay so for long";
}

TEST_F(CommitPipelineTest, WhoeverWaitsForAFlushBringsRelaxedWritesAlong) {
  RelaxedWrite first, second;
  m_db->submit(&first);
  m_env.run_until_idle();
  m_db->submit(&second);
  m_env.run_until_idle();
  EXPECT_TRUE(second.is_written && !first.ended);
  Write strict;
  strict.batch.put("strict", "value");
  m_db->submit(&strict);
  m_env.run_until_idle();
  EXPECT_TRUE(first.ended && second.ended && strict.ended);
}

TEST_F(CommitPipelineTest, WaitDurableHurriesRelaxedWrites) {
  RelaxedWrite write;
  m_db->submit(&write);
  m_env.run_until_idle();
  const uint64_t before_us = m_env.now_us();
  ASSERT_TRUE(m_db->wait_durable(write.last_sequence).ok());
  EXPECT_TRUE(write.ended);
  EXPECT_LT(m_env.now_us() - before_us, 100'000u);
}

// The log would grow, and so would what waits to be freed.
TEST_F(CommitPipelineTest, ManyRelaxedWritesAreFlushedWithoutDelay) {
  std::deque<RelaxedWrite> writes;
  const uint64_t before_us = m_env.now_us();
  for (int i = 0; i < 300; ++i) {
    m_db->submit(&writes.emplace_back(std::to_string(i)));
    m_env.run_until_idle();
  }
  EXPECT_TRUE(writes.back().is_written);
  EXPECT_TRUE(writes.front().ended);
  EXPECT_FALSE(writes.back().ended) << "else this shows nothing";
  EXPECT_LT(m_env.now_us() - before_us, 1'000'000u);
  m_db.reset();
}

TEST_F(CommitPipelineTest, MuchRelaxedDataIsFlushedWithoutDelay) {
  const auto file = new_file("/data");
  AlignedBuffer large;
  large.append(std::string(4u << 20, 'x'));
  std::deque<RelaxedWrite> writes;
  for (int i = 0; i < 10; ++i) {
    RelaxedWrite& write = writes.emplace_back();
    write.data.push_back({.file = file.get(), .offset = large.size() * i, .buffers = {{large.data(), large.size()}}});
    m_db->submit(&write);
    m_env.run_until_idle();
  }
  EXPECT_TRUE(writes.back().is_written);
  EXPECT_TRUE(writes.front().ended);
  EXPECT_FALSE(writes.back().ended) << "else this shows nothing";
  m_db.reset();
}

// A record may be there before the data that it names, and those of several writes arrive in any order.
TEST(RelaxedWriteTest, IsToldBehindItsDataAndInItsOrder) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimEnv env({.seed = seed, .record = false});
    Options options;
    options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
    ASSERT_TRUE(DB::create(&env, "/db", options).ok());
    std::unique_ptr<DB> db;
    ASSERT_TRUE(DB::open(&env, "/db", options, &db).ok());
    std::unique_ptr<File> file;
    ASSERT_TRUE(env.open_file("/data", {.create = true}, &file).ok());
    AlignedBuffer data;
    data.append(std::string(4096, 'x'));
    int told = 0;
    class Told final : public Submission {
     public:
      Told(File* file, int number, int* told) : m_file(file), m_number(number), m_told(told) {}
      void written() override {
        AlignedBuffer found;
        found.resize(4096);
        EXPECT_TRUE(m_file->read(4096 * static_cast<uint64_t>(m_number), found.size(), found.data()).ok());
        EXPECT_EQ(std::string_view(found.data(), found.size()), std::string(4096, 'x')) << m_number;
        EXPECT_EQ(m_number, (*m_told)++);
      }
      void durable(const Status&) override {}

     private:
      File* const m_file;
      const int m_number;
      int* const m_told;
    };
    std::deque<Told> writes;
    for (int number = 0; number < 12; ++number) {
      Told& write = writes.emplace_back(file.get(), number, &told);
      write.relaxed = true;
      write.batch.put(std::to_string(number), "value");
      if (number % 3 != 2) {
        write.data.push_back({.file = file.get(),
                              .offset = 4096 * static_cast<uint64_t>(number),
                              .buffers = {{data.data(), data.size()}}});
      } else {
        ASSERT_TRUE(file->write(4096 * static_cast<uint64_t>(number), data.data(), data.size()).ok());
      }
      db->submit(&write);
    }
    env.run_until_idle();
    EXPECT_EQ(told, 12) << seed;
    db.reset();
  }
}

// The flush that they wait for never comes to its end.
TEST_F(CommitPipelineTest, AFailedFlushEndsRelaxedWrites) {
  Status fatal;
  m_options.on_fatal = [&fatal](const Status& status) { fatal = status; };
  m_db.reset();
  ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
  RelaxedWrite write;
  m_db->submit(&write);
  m_env.run_until_idle();
  ASSERT_TRUE(write.is_written);
  m_env.fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "sync"), false);
  m_env.advance(Submission::kRelaxedDelay);
  EXPECT_FALSE(fatal.ok());
  EXPECT_FALSE(write.ended);
  RelaxedWrite late("late");
  m_db->submit(&late);
  m_env.run_until_idle();
  EXPECT_FALSE(late.is_written || late.ended);
}

// What was told is in the files: the end of the process alone takes nothing back, a loss of power may take the newest.
TEST_F(CommitPipelineTest, WhatIsWrittenOutlivesTheProcess) {
  std::deque<RelaxedWrite> writes;
  for (int i = 0; i < 12; ++i) {
    m_db->submit(&writes.emplace_back(std::to_string(i)));
    m_env.run_until_idle();
    ASSERT_TRUE(writes.back().is_written && !writes.back().ended) << i;
  }
  CrashImages images(m_env.trace(), {});
  const size_t last = images.cut_count() - 1;
  CrashState killed = images.state(last, 0);
  killed.landed = images.in_doubt(last);
  std::sort(killed.landed.begin(), killed.landed.end());
  CrashState power_lost = killed;
  power_lost.landed.clear();
  const auto keys_found = [&](const CrashState& state) {
    const auto env = images.materialize(state);
    std::unique_ptr<DB> db;
    EXPECT_TRUE(DB::open(env.get(), "/db", m_options, &db).ok());
    int found = 0;
    for (std::string value; found < 12 && db->get(std::to_string(found), &value).ok();) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(keys_found(killed), 12);
  EXPECT_LT(keys_found(power_lost), 12) << "else this shows nothing";
  m_db.reset();
}

// Its fragments fill more than one segment. Values stay in the log, in several records.
TEST_F(CommitPipelineTest, ABatchLargerThanASegmentIsOneBatch) {
  constexpr int kKeys = 100;
  m_options.value_separation_bytes = 1000;
  m_db.reset();
  ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
  const auto value = [](int i) { return std::string(i % 2 == 0 ? 3000 : 10, static_cast<char>('a' + i % 26)); };
  WriteBatch batch;
  for (int i = 0; i < kKeys; ++i) {
    batch.put(std::to_string(i), value(i));
  }
  const SequenceNumber before = m_db->statistics().last_sequence;
  const uint64_t groups = m_db->statistics().commit_groups;
  ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
  EXPECT_EQ(m_db->durable_sequence(), before + kKeys);
  EXPECT_GE(m_db->statistics().commit_groups, groups + 10);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      std::string found;
      ASSERT_TRUE(m_db->get(std::to_string(i), &found).ok());
      ASSERT_EQ(found, value(i));
    }
    if (round == 0) {  // from the log
      m_db.reset();
      ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
    } else {
      ASSERT_TRUE(m_db->flush().ok());
    }
  }
}

// Batches that wait for nothing share a record; those without updates take a sequence number, too.
TEST_F(CommitPipelineTest, NotesAmongBatchesThatWaitForNothingAreReadAgain) {
  for (int round = 0; round < 3; ++round) {
    for (const bool has_update : {round == 0, true, round == 1, false}) {
      WriteBatch batch;
      batch.note("a note");
      if (has_update) {
        batch.put("key", std::to_string(round));
      }
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
    }
    m_db.reset();
    const Status opened = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(opened.ok()) << opened.to_string();
    std::string found;
    ASSERT_TRUE(m_db->get("key", &found).ok());
    EXPECT_EQ(found, std::to_string(round));
  }
}

// The second of its segments cannot be written.
TEST_F(CommitPipelineTest, ABatchThatFailsInTheMiddleIsNotThere) {
  WriteBatch before;
  before.put("before", "");
  ASSERT_TRUE(m_db->write(std::move(before)).ok());
  m_env.run_until_idle();
  for (const std::string& path : m_env.files()) {
    if (path.starts_with("/db/log/") && !path.ends_with("000001.log")) {
      m_env.set_bad(SimBad::writes, path, 32 << 10, 64 << 10);
    }
  }
  Write large;
  for (int i = 0; i < 200; ++i) {
    large.batch.put(std::to_string(i), std::string(3000, 'v'));
  }
  m_db->submit(&large);
  EXPECT_FALSE(m_db->wait_durable(large.last_sequence).ok());
  EXPECT_FALSE(large.ended);
  m_env.run_until_idle();
  const uint32_t segments = m_db->statistics().log_segments;
  m_db.reset();
  m_env.clear_faults();
  ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
  std::string found;
  EXPECT_TRUE(m_db->get("before", &found).ok());
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(m_db->get(std::to_string(i), &found).is_not_found()) << i;
  }
  // What there was of it is nobody's: the log goes on in its segments, and no others are made in place of them.
  constexpr uint32_t kUsed = 2, kSpares = 2;
  WriteBatch after;
  after.put("after", std::string(54 << 10, 'v'));  // more than there is room for behind the recovery's record
  ASSERT_TRUE(m_db->write(std::move(after)).ok());
  m_env.run_until_idle();
  EXPECT_EQ(m_db->statistics().log_segments, std::max(segments, kUsed + kSpares));
}

TEST_F(CommitPipelineTest, AnOperationLargerThanASegmentHasARecordOfItsOwn) {
  WriteBatch batch;
  batch.put("a", "small");
  batch.put("b", std::string(200 << 10, 'b'));
  batch.put("c", "small");
  ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  m_db.reset();
  ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
  std::string found;
  ASSERT_TRUE(m_db->get("b", &found).ok());
  EXPECT_EQ(found, std::string(200 << 10, 'b'));
  EXPECT_TRUE(m_db->get("c", &found).ok());
}

// Not by their addresses, which differ from one process to the next: a run of the simulator can be repeated.
TEST_F(CommitPipelineTest, DataIsWrittenInTheOrderInWhichItsFilesAppear) {
  std::vector<std::unique_ptr<File>> files(8);
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = new_file("/" + std::to_string(i));
  }
  const std::vector<size_t> order{5, 2, 7, 0, 6, 1, 4, 3};
  Write write;
  for (const size_t i : order) {
    write.data.push_back(data_at(files[i].get(), 0));
  }
  m_db->submit(&write);
  ASSERT_TRUE(m_db->wait_durable(write.last_sequence).ok());
  EXPECT_TRUE(write.ended);

  std::map<uint64_t, size_t> number_of;  // by inode
  std::vector<size_t> written;
  for (const SimOp& op : m_env.trace().ops) {
    if (op.kind == SimOp::Kind::create && op.path.size() == 2) {
      number_of[op.inode] = op.path[1] - '0';
    } else if (op.kind == SimOp::Kind::write && number_of.contains(op.inode)) {
      written.push_back(number_of[op.inode]);
    }
  }
  EXPECT_EQ(written, order);
}

// Of a write with so much data that comes while another's record is being written: in how many of 20 histories its data
// goes out before that has arrived.
int histories_with_early_data(uint64_t data_bytes) {
  int early = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimEnv env({.seed = seed});
    Options options;
    options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 2, .zone_bytes = 64 << 10};
    EXPECT_TRUE(DB::create(&env, "/db", options).ok());
    std::unique_ptr<DB> db;
    EXPECT_TRUE(DB::open(&env, "/db", options, &db).ok());
    std::unique_ptr<File> file;
    EXPECT_TRUE(env.open_file("/file", {.create = true}, &file).ok());
    AlignedBuffer buffer;
    buffer.append(std::string(data_bytes, 'd'));
    env.run_until_idle();

    Write first, second;
    first.batch.put("first", "value");
    second.batch.put("second", "value");
    second.data.push_back(
        {.file = file.get(), .offset = 0, .buffers = {{buffer.data(), buffer.size()}}, .primed = true});
    const size_t before = env.trace().ops.size();
    bool submitted = false;
    env.set_step_observer([&] {
      if (!std::exchange(submitted, true)) {
        db->submit(&second);
      }
    });
    db->submit(&first);
    env.run_until_idle();
    EXPECT_TRUE(first.ended && second.ended);
    env.set_step_observer({});

    const auto& ops = env.trace().ops;
    const SimOp& record = ops[before];
    const auto data = std::find_if(ops.begin(), ops.end(), [&](const SimOp& op) {
      return op.kind == SimOp::Kind::write && op.length == data_bytes;
    });
    early += data->submitted < record.executed;
  }
  return early;
}

TEST(CommitWakeupTest, OnlyMuchDataWakesTheWorkerInTheMiddleOfACommit) {
  EXPECT_EQ(histories_with_early_data(16 << 10), 0);
  EXPECT_GT(histories_with_early_data(128 << 10), 0);
}

// The sync that the second one needs may come with a later group, after the first was acknowledged.
TEST_F(CommitPipelineTest, APrimedSliceSharesNoRequestWithOneThatIsNot) {
  const std::unique_ptr<File> file = new_file("/file");
  const uint64_t bytes = m_buffer.size();
  Write write;
  for (const bool primed : {true, true, false, false, true}) {
    write.data.push_back(data_at(file.get(), write.data.size() * bytes));
    write.data.back().primed = primed;
  }
  m_db->submit(&write);
  ASSERT_TRUE(m_db->wait_durable(write.last_sequence).ok());

  std::vector<uint64_t> slices;  // of each request
  const auto& ops = m_env.trace().ops;
  const uint64_t inode =
      std::find_if(ops.begin(), ops.end(), [](const SimOp& op) { return op.path == "/file"; })->inode;
  for (const SimOp& op : ops) {
    if (op.kind == SimOp::Kind::write && op.inode == inode) {
      slices.push_back(op.length / bytes);
    }
  }
  EXPECT_EQ(slices, (std::vector<uint64_t>{2, 2, 1}));
}

}  // namespace
}  // namespace vtkv
