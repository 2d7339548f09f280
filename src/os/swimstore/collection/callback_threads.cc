// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/callback_threads.h"

#include <algorithm>
#include <string>

#include "common/Cond.h"
#include "include/Context.h"

namespace swimstore {

void CallbackThreads::start(CephContext* cct, unsigned count) {
  m_uses_queues = count == 0;
  for (unsigned nth = 0; nth < std::max(count, 1u); ++nth) {
    m_threads.push_back(std::make_unique<Finisher>(cct, "swimstore-" + std::to_string(nth), "swim_callback"));
    m_threads.back()->start();
  }
}

void CallbackThreads::stop() {
  for (const auto& thread : m_threads) {
    thread->wait_for_empty();
    thread->stop();
  }
  m_threads.clear();
}

void CallbackThreads::give(const Collection& collection, std::list<Context*>& contexts) {
  if (contexts.empty()) {
    return;
  }
  if (ContextQueue* const queue = m_uses_queues ? collection.commit_queue.load() : nullptr; queue != nullptr) {
    queue->queue(contexts);
    return;
  }
  spg_t pgid;
  const size_t nth = collection.cid.is_pg(&pgid) ? pgid.ps() % m_threads.size() : 0;
  m_threads[nth]->queue(contexts);
}

}  // namespace swimstore
