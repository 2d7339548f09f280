// SPDX-License-Identifier: LGPL-2.1-or-later
// Calls the OSD back: completes the contexts of transactions that are applied or durable. Those of a collection are
// completed in the order in which they were given.
//
// An OSD offers a queue for each collection, which its own worker threads empty (set_collection_commit_queue). Each
// time something comes into an empty one all threads of a shard wake up, and one of them takes it. A thread of the
// store's takes all that a flush made durable at once, for half as many wakeups; so it does so unless it is told to use
// the queue (option swimstore_callback_threads; doc/benchmarks.md, "Who calls the OSD back").
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
  // As many as `count`. 0: the collections' queues take what comes, and one thread what is of a collection without one.
  void start(CephContext* cct, unsigned count);
  // Completes all that was given. REQUIRES: nothing more is given.
  void stop();

  // Takes all of them.
  void give(const Collection& collection, std::list<Context*>& contexts);

 private:
  bool m_uses_queues = false;
  std::vector<std::unique_ptr<Finisher>> m_threads;
};

}  // namespace swimstore
