// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/callback_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <vector>

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
  m_threads.start(g_ceph_context, 3);
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
  m_threads.start(g_ceph_context, 0);
  const CollectionRef with = group(0), without = group(1);
  with->commit_queue = &m_queue;
  give(*with, 1);
  give(*without, 2);
  m_threads.wait();
  m_threads.stop();
  EXPECT_EQ(m_called.count(with->cid), 0u);
  EXPECT_EQ(m_called[without->cid], std::vector<int>{2});
  std::list<Context*> queued;
  m_queue.move_to(queued);
  ASSERT_EQ(queued.size(), 1u);
  queued.front()->complete(0);
  EXPECT_EQ(m_called[with->cid], std::vector<int>{1});
}

}  // namespace
}  // namespace swimstore
