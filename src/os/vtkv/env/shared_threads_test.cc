// SPDX-License-Identifier: LGPL-2.1-or-later
// What workers share, and what they do not. That each of them is a worker as any other, env_test.cc asks.
#include "vtkv/env/shared_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "vtkv/testing/sim_env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

class SharedThreadsTest : public testing::Test {
 protected:
  std::unique_ptr<File> create(const std::string& path) {
    std::unique_ptr<File> file;
    EXPECT_TRUE(m_sim.open_file(path, {.create = true}, &file).ok());
    return file;
  }
  uint64_t syncs() const { return m_sim.calls(SimCall::sync); }

  SimEnv m_sim;
  SharedThreads m_env{&m_sim};
};

// A worker that submits what it is given, and counts what ends.
class Submitter {
 public:
  Submitter(Env* env, const std::string& name)
      : m_worker(env->start_worker(name, 4, [this](IoQueue& io) { return step(io); })) {}

  void submit(IoRequest* request) {
    m_request = request;
    m_worker->wake();
  }
  int ended() const { return m_ended; }

 private:
  NextStep step(IoQueue& io) {
    std::vector<IoRequest*> completed;
    io.reap(&completed);
    m_ended += static_cast<int>(completed.size());
    if (IoRequest* const request = std::exchange(m_request, nullptr)) {
      io.submit(request);
    }
    return NextStep::on_event();
  }

  IoRequest* m_request = nullptr;
  int m_ended = 0;
  std::unique_ptr<Worker> m_worker;
};

IoRequest sync_of(File* file, bool any_file) {
  IoRequest request;
  request.op = IoRequest::Op::sync;
  request.file = file;
  request.any_file = any_file;
  return request;
}

TEST_F(SharedThreadsTest, AFlushServesAllThatWaitForOne) {
  const std::unique_ptr<File> files[] = {create("/a"), create("/b"), create("/c")};
  std::vector<std::unique_ptr<Submitter>> workers;
  std::vector<IoRequest> syncs_of_workers;
  for (const auto& file : files) {
    workers.push_back(std::make_unique<Submitter>(&m_env, "commit"));
    syncs_of_workers.push_back(sync_of(file.get(), true));
  }
  m_sim.run_until_idle();
  const uint64_t before = syncs();
  for (int round = 1; round <= 10; ++round) {
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i]->submit(&syncs_of_workers[i]);
    }
    m_sim.advance(std::chrono::milliseconds(10));
    for (const auto& worker : workers) {
      ASSERT_EQ(worker->ended(), round);
    }
  }
  EXPECT_EQ(syncs() - before, 10U);
}

// Two, each of which syncs a file.
class TwoSubmittersTest : public SharedThreadsTest {
 protected:
  TwoSubmittersTest() { m_sim.run_until_idle(); }
  // Both at once, to their end.
  void submit_both(bool any_file) {
    m_first = sync_of(m_files[0].get(), any_file);
    m_second = sync_of(m_files[1].get(), any_file);
    m_one.submit(&m_first);
    m_other.submit(&m_second);
    m_sim.run_until_idle();
    EXPECT_EQ(m_one.ended() + m_other.ended(), 2);
  }

  const std::unique_ptr<File> m_files[2] = {create("/a"), create("/b")};
  IoRequest m_first, m_second;
  Submitter m_one{&m_env, "commit"};
  Submitter m_other{&m_env, "commit"};
};

TEST_F(TwoSubmittersTest, ASyncOfItsOwnFileIsSharedWithNobody) {
  const uint64_t before = syncs();
  submit_both(/*any_file=*/false);
  EXPECT_EQ(syncs() - before, 2U);
}

TEST_F(TwoSubmittersTest, AFailedFlushFailsForAllThatItServes) {
  m_sim.fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "sync"), false);
  submit_both(/*any_file=*/true);
  EXPECT_EQ(m_first.result.error_number(), EIO);
  EXPECT_EQ(m_second.result.error_number(), EIO);
}

// Where each step ran, and whether two ran at once.
class StepLog {
 public:
  NextStep step() {
    EXPECT_FALSE(m_in_step.exchange(true));
    {
      const MutexLock lock(m_mutex);
      m_threads.insert(std::this_thread::get_id());
      ++m_steps;
    }
    std::this_thread::yield();
    m_in_step = false;
    return NextStep::now();
  }
  size_t threads() {
    const MutexLock lock(m_mutex);
    return m_threads.size();
  }
  uint64_t steps() {
    const MutexLock lock(m_mutex);
    return m_steps;
  }

 private:
  std::atomic<bool> m_in_step{false};
  Mutex m_mutex;
  std::set<std::thread::id> m_threads GUARDED_BY(m_mutex);
  uint64_t m_steps GUARDED_BY(m_mutex) = 0;
};

TEST(SharedThreadsOnTheHostTest, WorkersOfOneNameTakeTurnsOnOneThread) {
  SharedThreads env(posix_env());
  StepLog log;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 5; ++i) {
    workers.push_back(env.start_worker("turns", 0, [&log](IoQueue&) { return log.step(); }));
  }
  while (log.steps() < 1000) {
    std::this_thread::yield();
  }
  workers.clear();
  EXPECT_EQ(log.threads(), 1U);
}

TEST(SharedThreadsOnTheHostTest, WorkersOfSomeNamesKeepThreadsOfTheirOwn) {
  SharedThreads env(posix_env(), {"own"});
  std::atomic<int> both_in_step{0};
  const auto step = [&](IoQueue&) {
    for (++both_in_step; both_in_step < 2;) {
      std::this_thread::yield();
    }
    return NextStep::on_event();
  };
  const auto one = env.start_worker("own", 0, step);
  const auto other = env.start_worker("own", 0, step);
  while (both_in_step < 2) {
    std::this_thread::yield();
  }
}

TEST(SharedThreadsOnTheHostTest, ALongStepHoldsUpItsOwnNameAlone) {
  SharedThreads env(posix_env());
  std::atomic<bool> over{false};
  std::atomic<int> others{0};
  auto slow = env.start_worker("compaction", 0, [&](IoQueue&) {
    while (!over) {
      std::this_thread::yield();
    }
    return NextStep::on_event();
  });
  auto same = env.start_worker("compaction", 0, [&](IoQueue&) {
    EXPECT_TRUE(over);
    return NextStep::on_event();
  });
  auto other = env.start_worker("commit", 0, [&](IoQueue&) {
    ++others;
    return NextStep::on_event();
  });
  for (int i = 1; i <= 100; ++i) {
    other->wake();
    while (others < i) {
      std::this_thread::yield();
    }
  }
  over = true;
}

}  // namespace
}  // namespace vtkv
