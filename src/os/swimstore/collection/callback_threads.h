// SPDX-License-Identifier: LGPL-2.1-or-later
// Calls the OSD back: completes the contexts of transactions that are applied or durable. Those of a collection are
// completed in the order in which they were given.
//
// An OSD offers a queue for each collection, which its own worker threads empty (set_collection_commit_queue). Each
// time something comes into an empty one all threads of a shard wake up, and one of them takes it. A thread of the
// store's is awake already for most of what one flush made durable, which saves a quarter of the wakeups; so it calls,
// unless the option swimstore_callback_threads says 0 (doc/benchmarks.md, "Who calls the OSD back"). Nor where the
// option osd_fast_shutdown says no: such an OSD takes its placement groups down before the store, throws away what its
// queues hold by then, and does not survive what is called behind that.
//
// One thread calls as long as it gets through. A callback waits for its placement group's lock, and who holds that may
// be a write that waits for free space, while others' answers are waited for by who would free some. So each
// collection's callbacks are a list of their own, and another thread takes the next list when one has waited for some
// milliseconds. As many as the OSD has op threads may hold such locks; the greatest number of threads should be
// above that.
//
// Not the thread that commits: who holds a placement group's lock may wait for a commit, too.
//
// Threads: give() and prefer_queues() may be called from any thread, the others from one.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <thread>
#include <vector>

#include "include/Context.h"

#include "swimstore/collection/collection.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class CallbackThreads {
 public:
  ~CallbackThreads() { stop(); }

  // At most `most` threads: one, and others when they are needed. 0: the collections' queues take what comes, and one
  // thread what is of a collection without a queue.
  void start(unsigned most);
  // From now on as with 0, but for collections of which a thread still has something, until it is done with them.
  void prefer_queues();
  // Until all that was given is completed.
  void wait();
  // What is given later is not completed any more.
  void stop();

  // Takes all of them. REQUIRES: start() was called.
  void give(const Collection& collection, std::list<Context*>& contexts);

  // Of those that were started.
  unsigned threads() const EXCLUDES(m_mutex);

 private:
  // A list waits for longer: whoever calls is slow, or waits.
  static constexpr std::chrono::milliseconds kPatience{20};
  static constexpr unsigned kQuietTurnsMax = 50;
  // That one thread gets through while another would wake up.
  static constexpr size_t kListsOfOne = 16;

  void run() EXCLUDES(m_mutex);
  void watch() EXCLUDES(m_mutex);
  // What the first list that is ready has; it is not ready any more.
  OpSequencerRef take_list(std::vector<Context*>* contexts) REQUIRES(m_mutex);
  void give_list_back(const OpSequencerRef& sequencer) REQUIRES(m_mutex);
  void wake_another() REQUIRES(m_mutex);
  // Will take the next list before long.
  size_t awake() const REQUIRES(m_mutex) { return m_threads.size() - m_asleep + m_wakes - m_stuck; }

  mutable vtkv::Mutex m_mutex;
  size_t m_most GUARDED_BY(m_mutex) = 0;
  bool m_prefers_queues GUARDED_BY(m_mutex) = false;
  bool m_stopping GUARDED_BY(m_mutex) = false;
  std::deque<OpSequencerRef> m_ready GUARDED_BY(m_mutex);  // have something, and no thread calls it
  size_t m_calling GUARDED_BY(m_mutex) = 0;
  uint64_t m_turns GUARDED_BY(m_mutex) = 0;  // lists that were taken
  size_t m_stuck GUARDED_BY(m_mutex) = 0;  // of those that call: have their list for longer than kPatience
  uint64_t m_stuck_turns GUARDED_BY(m_mutex) = 0;  // they took theirs before that turn ended
  size_t m_asleep GUARDED_BY(m_mutex) = 0;
  size_t m_wakes GUARDED_BY(m_mutex) = 0;  // of these, to come
  bool m_is_watched GUARDED_BY(m_mutex) = false;
  vtkv::ConditionVariable m_work, m_watch, m_done;
  std::vector<std::thread> m_threads GUARDED_BY(m_mutex);
  std::thread m_watcher;  // start() and stop() alone
};

}  // namespace swimstore
