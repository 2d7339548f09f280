// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/callback_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "common/Finisher.h"  // ContextQueue
#include "common/ceph_mutex.h"
#include "global/global_context.h"
#include "include/Context.h"

#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

class CallbackThreadsTest : public testing::Test {
 protected:
  CollectionRef group(unsigned number) { return m_table.prepare(coll_t(spg_t(pg_t(number, 1), shard_id_t::NO_SHARD))); }
  void give(const Collection& collection, int number) {
    std::list<Context*> contexts{new LambdaContext([this, &collection, number](int) {
      const std::lock_guard lock(m_lock);
      m_called[collection.cid].push_back(number);
    })};
    m_threads.give(collection, contexts);
    EXPECT_TRUE(contexts.empty());
  }

  size_t call_queued() {
    std::list<Context*> queued;
    m_queue.move_to(queued);
    for (Context* const context : queued) {
      context->complete(0);
    }
    return queued.size();
  }

  vtkv::SimEnv m_env{{}};
  CollectionTable m_table{g_ceph_context, &m_env};
  CallbackThreads m_threads;
  std::mutex m_lock;
  std::map<coll_t, std::vector<int>> m_called;
  ceph::mutex m_queue_lock = ceph::make_mutex("CallbackThreadsTest");
  ceph::condition_variable m_queue_filled;
  ContextQueue m_queue{m_queue_lock, m_queue_filled};
};

TEST_F(CallbackThreadsTest, EachCollectionIsCalledBackInOrder) {
  constexpr int kEach = 200;
  m_threads.start(3);
  const std::vector<CollectionRef> groups{group(0), group(1), group(2), group(5), m_table.prepare(coll_t::meta())};
  groups[0]->commit_queue = &m_queue;
  for (int number = 0; number < kEach; ++number) {
    for (const CollectionRef& each : groups) {
      give(*each, number);
    }
  }
  m_threads.wait();
  m_threads.stop();
  EXPECT_TRUE(m_queue.empty()) << "the threads are faster";
  ASSERT_EQ(m_called.size(), groups.size());
  for (const auto& [cid, numbers] : m_called) {
    EXPECT_EQ(numbers.size(), static_cast<size_t>(kEach)) << cid;
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << cid;
  }
}

TEST_F(CallbackThreadsTest, WithoutThreadsAQueueIsUsedWhereThereIsOne) {
  m_threads.start(0);
  const CollectionRef with = group(0), without = group(1);
  with->commit_queue = &m_queue;
  give(*with, 1);
  give(*without, 2);
  m_threads.wait();
  m_threads.stop();
  EXPECT_EQ(m_called.count(with->cid), 0u);
  EXPECT_EQ(m_called[without->cid], std::vector<int>{2});
  EXPECT_EQ(call_queued(), 1u);
  EXPECT_EQ(m_called[with->cid], std::vector<int>{1});
}

TEST_F(CallbackThreadsTest, QueuesThatArePreferredTakeWhatComesBehindWhatAThreadHas) {
  m_threads.start(2);
  const CollectionRef busy = group(0), idle = group(1);
  busy->commit_queue = idle->commit_queue = &m_queue;
  std::promise<void> released;
  std::list<Context*> waits{new LambdaContext([&released](int) { released.get_future().wait(); })};
  m_threads.give(*busy, waits);
  give(*busy, 1);
  m_threads.prefer_queues();
  give(*busy, 2);
  EXPECT_TRUE(m_queue.empty()) << "it would overtake what the thread has";
  give(*idle, 1);
  EXPECT_EQ(call_queued(), 1u) << "no thread of the store calls any more";
  released.set_value();
  m_threads.wait();
  EXPECT_EQ(m_called[busy->cid], (std::vector<int>{1, 2}));
  give(*busy, 3);
  EXPECT_EQ(call_queued(), 1u);
  m_threads.stop();
  EXPECT_EQ(m_called[busy->cid], (std::vector<int>{1, 2, 3}));
}

// As a write that waits for free space, with its placement group locked, and a client that removes one object after the
// other from others.
TEST_F(CallbackThreadsTest, WhatWaitsHoldsUpNoOtherCollection) {
  constexpr unsigned kThreads = 4, kGroups = 8;
  m_threads.start(kThreads);
  std::vector<CollectionRef> groups;
  for (unsigned number = 0; number < kGroups; ++number) {
    groups.push_back(group(number));
  }
  std::promise<void> released;
  const std::shared_future<void> release = released.get_future().share();
  for (unsigned stuck = 0; stuck + 1 < kThreads; ++stuck) {
    std::list<Context*> contexts{new LambdaContext([release](int) { release.wait(); })};
    m_threads.give(*groups[stuck], contexts);
    give(*groups[stuck], 1);
    for (int number = 0; number < 3; ++number) {
      std::promise<void> told;
      std::list<Context*> other{new LambdaContext([&told](int) { told.set_value(); })};
      m_threads.give(*groups[kGroups - 1], other);
      ASSERT_EQ(told.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready) << stuck;
    }
  }
  EXPECT_LE(m_threads.threads(), kThreads);
  {
    const std::lock_guard lock(m_lock);
    EXPECT_TRUE(m_called[groups[1]->cid].empty()) << "it comes behind what waits";
  }
  released.set_value();
  m_threads.wait();
  m_threads.stop();
  EXPECT_EQ(m_called[groups[1]->cid], std::vector<int>{1});
}

}  // namespace
}  // namespace swimstore
