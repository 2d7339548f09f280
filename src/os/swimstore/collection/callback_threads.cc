// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/callback_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/Finisher.h"  // ContextQueue
#include "common/Thread.h"

#include "vtkv/util/invariants.h"

namespace swimstore {

void CallbackThreads::start(unsigned most) {
  stop();
  vtkv::MutexLock lock(m_mutex);
  m_most = std::max(1u, most);
  m_prefers_queues = most == 0;
  m_stopping = m_is_watched = false;
  m_ready.clear();  // of what was given too late
  m_threads.reserve(m_most);
  m_threads.push_back(make_named_thread("swim_callback", &CallbackThreads::run, this));
  m_watcher = make_named_thread("swim_callback_w", &CallbackThreads::watch, this);
}

void CallbackThreads::prefer_queues() {
  vtkv::MutexLock lock(m_mutex);
  m_prefers_queues = true;
}

void CallbackThreads::wait() {
  vtkv::MutexLock lock(m_mutex);
  m_done.wait(lock, [this]() REQUIRES(m_mutex) { return m_ready.empty() && m_calling == 0; });
}

void CallbackThreads::stop() {
  std::vector<std::thread> threads;
  {
    vtkv::MutexLock lock(m_mutex);
    m_stopping = true;
    threads.swap(m_threads);
    m_asleep = m_wakes = 0;
    m_work.notify_all();
    m_watch.notify_all();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (m_watcher.joinable()) {
    m_watcher.join();
  }
}

unsigned CallbackThreads::threads() const {
  vtkv::MutexLock lock(m_mutex);
  return static_cast<unsigned>(m_threads.size());
}

void CallbackThreads::give(const Collection& collection, std::list<Context*>& contexts) {
  if (contexts.empty()) {
    return;
  }
  OpSequencer::Callbacks& callbacks = collection.sequencer->callbacks;
  vtkv::MutexLock lock(m_mutex);
  ContextQueue* const queue = m_prefers_queues ? collection.commit_queue.load() : nullptr;
  if (queue != nullptr && !callbacks.is_listed) {
    lock.unlock();
    queue->queue(contexts);
    return;
  }
  callbacks.contexts.insert(callbacks.contexts.end(), contexts.begin(), contexts.end());
  contexts.clear();
  if (m_stopping || std::exchange(callbacks.is_listed, true)) {
    return;
  }
  m_ready.push_back(collection.sequencer);
  if (!std::exchange(m_is_watched, true)) {
    m_watch.notify_one();
  }
  // The OSD's own callbacks may take long.
  if (awake() == 0 || m_ready.size() > kListsOfOne * awake() || !collection.cid.is_pg()) {
    wake_another();
  }
}

void CallbackThreads::wake_another() {
  if (m_asleep > m_wakes) {
    ++m_wakes;
    m_work.notify_one();
  } else if (m_threads.size() < m_most && !m_stopping) {
    try {
      m_threads.push_back(make_named_thread("swim_callback", &CallbackThreads::run, this));
    } catch (const std::system_error&) {
      // The host has no room for one now: those that are there go on, and the watcher tries again.
    }
  }
}

void CallbackThreads::run() {
  std::vector<Context*> contexts;
  vtkv::MutexLock lock(m_mutex);
  while (!m_stopping) {
    if (m_ready.empty()) {
      ++m_asleep;
      m_work.wait(lock, [this]() REQUIRES(m_mutex) { return m_wakes > 0 || m_stopping; });
      if (!m_stopping) {
        --m_asleep;
        --m_wakes;
      }
      continue;
    }
    const OpSequencerRef sequencer = take_list(&contexts);
    const uint64_t turn = m_turns;
    lock.unlock();
    for (Context* const context : contexts) {
      context->complete(0);
    }
    contexts.clear();
    lock.lock();
    m_stuck -= turn <= m_stuck_turns ? 1 : 0;
    give_list_back(sequencer);
  }
}

OpSequencerRef CallbackThreads::take_list(std::vector<Context*>* contexts) {
  OpSequencerRef sequencer = std::move(m_ready.front());
  m_ready.pop_front();
  VTKV_ASSERT(sequencer->callbacks.is_listed && contexts->empty());
  contexts->swap(sequencer->callbacks.contexts);
  ++m_turns;
  ++m_calling;
  return sequencer;
}

void CallbackThreads::give_list_back(const OpSequencerRef& sequencer) {
  --m_calling;
  OpSequencer::Callbacks& callbacks = sequencer->callbacks;
  callbacks.is_listed = !callbacks.contexts.empty();
  if (callbacks.is_listed) {
    m_ready.push_back(sequencer);
  } else if (m_ready.empty() && m_calling == 0) {
    m_done.notify_all();
  }
}

void CallbackThreads::watch() {
  vtkv::MutexLock lock(m_mutex);
  unsigned quiet_turns = 0;
  while (!m_stopping) {
    if (!m_is_watched) {
      m_watch.wait(lock, [this]() REQUIRES(m_mutex) { return m_is_watched || m_stopping; });
      quiet_turns = 0;
    }
    const uint64_t turns = m_turns;
    const size_t ready = m_ready.size();
    m_watch.wait_for(lock, kPatience, [this]() REQUIRES(m_mutex) { return m_stopping; });
    quiet_turns = turns == m_turns ? quiet_turns + 1 : 0;
    if (quiet_turns > 0) {
      m_stuck = m_calling;
      m_stuck_turns = m_turns;
    }
    if (m_turns - turns < ready) {  // some of these still wait
      wake_another();
    } else if (quiet_turns > kQuietTurnsMax && m_ready.empty()) {
      m_is_watched = false;
    }
  }
}

}  // namespace swimstore
