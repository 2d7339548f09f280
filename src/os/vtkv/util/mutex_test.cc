// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/mutex.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace vtkv {
namespace {

static_assert(sizeof(Mutex) == sizeof(std::mutex));
static_assert(sizeof(MutexLock) == sizeof(std::unique_lock<std::mutex>));
static_assert(sizeof(ConditionVariable) == sizeof(std::condition_variable));

struct Shared {
  Mutex mutex;
  ConditionVariable changed;
  uint64_t count GUARDED_BY(mutex) = 0;
};

TEST(Mutex, OneHoldsItAtATime) {
  constexpr uint64_t kThreads = 4, kTimes = 20000;
  Shared shared;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&shared] {
      for (uint64_t n = 0; n < kTimes; ++n) {
        MutexLock lock(shared.mutex);
        ++shared.count;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  MutexLock lock(shared.mutex);
  EXPECT_EQ(shared.count, kThreads * kTimes);
}

bool others_get(Mutex& mutex) {
  bool got = false;
  std::thread([&] {
    if (mutex.try_lock()) {
      got = true;
      mutex.unlock();
    }
  }).join();
  return got;
}

TEST(Mutex, ALockHoldsItToItsEndUnlessToldOtherwise) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(others_get(mutex));
    lock.unlock();
    EXPECT_TRUE(others_get(mutex));
    lock.lock();
    EXPECT_FALSE(others_get(mutex));
  }
  EXPECT_TRUE(others_get(mutex));
}

TEST(Mutex, ALockReleasesTheMutexThatItAdopts) {
  Mutex mutex;
  if (!mutex.try_lock()) {
    FAIL();
  }
  {
    MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(others_get(mutex));
  }
  EXPECT_TRUE(others_get(mutex));
}

TEST(Mutex, AWaitEndsWithItsPredicate) {
  Shared shared;
  std::thread other([&shared] {
    for (uint64_t i = 0; i < 3; ++i) {
      MutexLock lock(shared.mutex);
      ++shared.count;
      shared.changed.notify_all();
    }
  });
  {
    MutexLock lock(shared.mutex);
    shared.changed.wait(lock, [&shared]() REQUIRES(shared.mutex) { return shared.count == 3; });
    EXPECT_EQ(shared.count, 3u);
  }
  other.join();
}

TEST(Mutex, AWaitWithALimitSaysWhetherThePredicateHeld) {
  Shared shared;
  MutexLock lock(shared.mutex);
  const auto counted = [&shared]() REQUIRES(shared.mutex) { return shared.count > 0; };
  EXPECT_FALSE(shared.changed.wait_for(lock, std::chrono::milliseconds(1), counted));
  shared.count = 1;
  EXPECT_TRUE(shared.changed.wait_for(lock, std::chrono::hours(1), counted));
}

}  // namespace
}  // namespace vtkv
