// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/op_sequencer.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace swimstore {

// The commit may be reported before queueing has returned: only the greatest of each count.

void OpSequencer::submitted(vtkv::SequenceNumber sequence) {
  vtkv::MutexLock lock(m_mutex);
  m_submitted = std::max(m_submitted, sequence);
}

void OpSequencer::committed(vtkv::SequenceNumber sequence, std::list<Context*>* ready) {
  vtkv::MutexLock lock(m_mutex);
  m_committed = std::max(m_committed, sequence);
  while (!m_waiters.empty() && m_waiters.front().first <= m_committed) {
    ready->push_back(m_waiters.front().second);
    m_waiters.pop_front();
  }
}

bool OpSequencer::flush_commit(Context* context) {
  vtkv::MutexLock lock(m_mutex);
  if (m_submitted <= m_committed) {
    return true;
  }
  VTKV_ASSERT(m_waiters.empty() || m_waiters.back().first <= m_submitted);
  m_waiters.emplace_back(m_submitted, context);
  return false;
}

}  // namespace swimstore
