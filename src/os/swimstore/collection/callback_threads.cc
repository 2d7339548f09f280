// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/callback_threads.h"

#include <string>

#include "common/Cond.h"
#include "include/Context.h"

#include "vtkv/util/invariants.h"

namespace swimstore {

void CallbackThreads::start(CephContext* cct, unsigned count) {
  m_uses_queues = count == 0;
  m_threads.clear();
  for (unsigned nth = 0; nth <= count; ++nth) {
    m_threads.push_back(std::make_unique<Finisher>(cct, "swimstore-" + std::to_string(nth), "swim_callback"));
    m_threads.back()->start();
  }
}

void CallbackThreads::wait() {
  for (const auto& thread : m_threads) {
    thread->wait_for_empty();
  }
}

// They stay, so that a context that comes too late is left alone.
void CallbackThreads::stop() {
  for (const auto& thread : m_threads) {
    thread->stop();
  }
}

void CallbackThreads::give(const Collection& collection, std::list<Context*>& contexts) {
  if (contexts.empty()) {
    return;
  }
  if (ContextQueue* const queue = m_uses_queues ? collection.commit_queue.load() : nullptr; queue != nullptr) {
    queue->queue(contexts);
    return;
  }
  VTKV_ASSERT(!m_threads.empty());
  spg_t pgid;
  const size_t of_groups = m_threads.size() - 1;
  const size_t nth = of_groups > 0 && collection.cid.is_pg(&pgid) ? pgid.ps() % of_groups : of_groups;
  m_threads[nth]->queue(contexts);
}

}  // namespace swimstore
