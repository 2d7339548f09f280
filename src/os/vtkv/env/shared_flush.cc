// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/shared_flush.h"

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

void SharedFlush::add(IoRequest* request) {
  VTKV_ASSERT(request->op == IoRequest::Op::sync && request->any_file);
  if (m_pacer.flushing() && mutated(Mutation::flush_joined_late)) {
    m_served.push_back(request);
    return;
  }
  m_asked_us = m_waiting.empty() ? m_env->now_us() : m_asked_us;
  m_waiting.push_back(request);
}

std::chrono::microseconds SharedFlush::begin(IoQueue& io) {
  if (m_waiting.empty() || m_pacer.flushing()) {
    return {};
  }
  const uint64_t now_us = m_env->now_us();
  const std::chrono::microseconds hold = m_pacer.hold_flush(m_asked_us, now_us);
  if (hold.count() == 0) {
    m_served.swap(m_waiting);
    m_waiting.clear();
    m_flush.file = m_served.front()->file;
    m_flush.waiters = 0;
    for (const IoRequest* request : m_served) {
      m_flush.waiters += request->waiters;
    }
    m_pacer.flush_began(now_us);
    io.submit(&m_flush);
  }
  return hold;
}

const std::vector<IoRequest*>& SharedFlush::end() {
  for (IoRequest* request : m_served) {
    request->result = m_flush.result;
  }
  m_pacer.flush_ended(m_flush.waiters, m_env->now_us());
  return m_served;
}

}  // namespace vtkv
