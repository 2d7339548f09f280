// SPDX-License-Identifier: LGPL-2.1-or-later
// Calls the OSD back: completes the contexts of transactions that are applied or durable. Those of a collection are
// completed in the order in which they were given.
//
// An OSD offers a queue for each collection, which its own worker threads empty (set_collection_commit_queue). Each
// time something comes into an empty one all threads of a shard wake up, and one of them takes it. A thread of the
// store's is awake already for most of what one flush made durable, which saves a third of the wakeups; so it calls,
// unless the option swimstore_callback_threads says 0 (doc/benchmarks.md, "Who calls the OSD back").
//
// Not the thread that commits: a callback waits for its placement group's lock, whose holder may wait for a commit.
//
// Threads: give() may be called from any thread, the others from one.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "common/Finisher.h"

#include "swimstore/collection/collection.h"

namespace swimstore {

class CallbackThreads {
 public:
  // As many as `count` for placement groups, and one for the OSD's own collection, whose callbacks may take long. 0:
  // the collections' queues take what comes, and the one thread what is of a collection without a queue.
  void start(CephContext* cct, unsigned count);
  // Until all that was given is completed.
  void wait();
  // What is given later is not completed any more.
  void stop();

  // Takes all of them. REQUIRES: start() was called.
  void give(const Collection& collection, std::list<Context*>& contexts);

 private:
  bool m_uses_queues = false;
  std::vector<std::unique_ptr<Finisher>> m_threads;
};

}  // namespace swimstore
