// SPDX-License-Identifier: LGPL-2.1-or-later
// Steps of workers that are left in the middle: what that shows, and that nothing comes of it that threads could not
// do.

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "vtkv/testing/sim_env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {
namespace {

// Looks at a number, and claims the next one afterwards: with the lock each time, but not all the time.
int numbers_claimed(uint64_t seed, bool interleaved) {
  SimEnv env({.seed = seed, .interleaved = interleaved});
  std::mutex lock;
  int last = 0;
  int left = 4;
  const auto claim = [&](IoQueue&) {
    int next = 0;
    {
      std::lock_guard guard(lock);
      if (left == 0) {
        return NextStep::on_event();
      }
      --left;
      next = last + 1;
    }
    std::lock_guard guard(lock);
    last = next;
    return NextStep::now();
  };
  const auto one = env.start_worker("one", 0, claim);
  const auto other = env.start_worker("other", 0, claim);
  env.run_until_idle();
  return last;
}

TEST(SimInterleavingTest, ALookBeforeAClaimIsSeenThrough) {
  std::set<int> whole, split;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    whole.insert(numbers_claimed(seed, false));
    split.insert(numbers_claimed(seed, true));
  }
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its locks stand before ours";
#endif
  EXPECT_EQ(whole, std::set<int>{4});
  EXPECT_GT(split.size(), 1u);
}

// Who comes when, in letters: the first worker writes, the second and the test only count.
std::string run_of(uint64_t seed) {
  SimEnv env({.seed = seed, .interleaved = true});
  std::unique_ptr<File> file;
  EXPECT_TRUE(env.open_file("/file", {.create = true, .direct = false}, &file).ok());
  std::string order;
  int left = 6;
  const auto writer = env.start_worker("writer", 0, [&](IoQueue&) {
    order += 'a';
    EXPECT_TRUE(file->write(0, "x", 1).ok());
    order += 'b';
    EXPECT_TRUE(file->sync().ok());
    order += 'c';
    return --left > 0 ? NextStep::now() : NextStep::on_event();
  });
  const auto counter = env.start_worker("counter", 0, [&](IoQueue&) {
    order += '.';
    return left > 0 ? NextStep::now() : NextStep::on_event();
  });
  env.run_until_idle();
  return order;
}

TEST(SimInterleavingTest, OthersComeInTheMiddleOfAStepAndTheSeedSaysWhen) {
  std::set<std::string> runs;
  bool in_the_middle = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string order = run_of(seed);
    EXPECT_EQ(order, run_of(seed));
    runs.insert(order);
    in_the_middle = in_the_middle || order.find("a.") != std::string::npos || order.find("b.") != std::string::npos;
  }
  EXPECT_GT(runs.size(), 10u);
  EXPECT_TRUE(in_the_middle);
}

// The step is left in the middle with the lock in its hand.
TEST(SimInterleavingTest, WhoWantsALockWaitsUntilItIsReleased) {
  uint64_t held = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimEnv env({.seed = seed, .interleaved = true});
    std::unique_ptr<File> file;
    ASSERT_TRUE(env.open_file("/file", {.create = true, .direct = false}, &file).ok());
    std::mutex lock;
    std::shared_mutex shared;
    bool inside = false;
    int steps = 0;
    const auto holder = env.start_worker("holder", 0, [&](IoQueue&) {
      std::lock_guard guard(lock);
      std::lock_guard alone(shared);
      inside = true;
      EXPECT_TRUE(file->write(0, "x", 1).ok());
      EXPECT_TRUE(file->sync().ok());
      inside = false;
      return ++steps < 3 ? NextStep::now() : NextStep::on_event();
    });
    std::unique_ptr<Signal> signal = env.new_signal();
    Mutex wait_lock;
    MutexLock waiting(wait_lock);
    signal->wait(waiting, [&] { return inside || steps == 3; });
    held += inside;
    {
      std::shared_lock guard(shared);
      EXPECT_FALSE(inside);
    }
    std::lock_guard guard(lock);
    EXPECT_FALSE(inside);
  }
#if !defined(__SANITIZE_THREAD__)
  EXPECT_GT(held, 0u);
#endif
}

TEST(SimInterleavingTest, TheEndOfAWorkerWaitsForItsStep) {
  uint64_t cut_short = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimEnv env({.seed = seed, .interleaved = true});
    std::unique_ptr<File> file;
    ASSERT_TRUE(env.open_file("/file", {.create = true, .direct = false}, &file).ok());
    bool begun = false, ended = false;
    auto worker = env.start_worker("worker", 0, [&](IoQueue&) {
      begun = true;
      EXPECT_TRUE(file->write(0, "x", 1).ok());
      EXPECT_TRUE(file->sync().ok());
      ended = true;
      return NextStep::on_event();
    });
    std::unique_ptr<Signal> signal = env.new_signal();
    Mutex wait_lock;
    MutexLock waiting(wait_lock);
    signal->wait(waiting, [&] { return begun; });
    cut_short += !ended;
    worker.reset();
    EXPECT_TRUE(ended);
  }
  EXPECT_GT(cut_short, 0u);
}

}  // namespace
}  // namespace vtkv
