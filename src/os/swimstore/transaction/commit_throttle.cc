// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/commit_throttle.h"

#include "include/ceph_assert.h"

#include "swimstore/ops/suspended_timeout.h"

namespace swimstore {

bool CommitThrottle::has_room(uint64_t bytes) const {
  const uint64_t limit = m_limit_bytes;
  const uint64_t taken = m_taken_bytes;
  return limit == 0 || taken == 0 || (taken < limit && bytes <= limit - taken);
}

uint64_t CommitThrottle::take_us(uint64_t bytes, HBHandle* handle) {
  vtkv::MutexLock lock(m_mutex);
  if (m_turns == m_turns_gone && has_room(bytes)) {
    m_taken_bytes += bytes;
    return 0;
  }
  const SuspendedTimeout suspended(handle);
  const uint64_t began_us = m_env->now_us();
  const uint64_t turn = m_turns++;
  m_room->wait(lock, [this, turn, bytes]() REQUIRES(m_mutex) { return turn == m_turns_gone && has_room(bytes); });
  ++m_turns_gone;
  m_taken_bytes += bytes;
  if (m_turns != m_turns_gone) {
    m_room->notify_all();  // the next one's turn; there may be room for it too
  }
  return m_env->now_us() - began_us;
}

void CommitThrottle::take_more(uint64_t bytes) {
  vtkv::MutexLock lock(m_mutex);
  m_taken_bytes += bytes;
}

void CommitThrottle::give_back(uint64_t bytes) {
  vtkv::MutexLock lock(m_mutex);
  ceph_assert(bytes <= m_taken_bytes);
  m_taken_bytes -= bytes;
  if (m_turns != m_turns_gone) {
    m_room->notify_all();
  }
}

void CommitThrottle::set_limit(uint64_t bytes) {
  vtkv::MutexLock lock(m_mutex);
  m_limit_bytes = bytes;
  m_room->notify_all();
}

uint64_t CommitThrottle::waiting() const {
  vtkv::MutexLock lock(m_mutex);
  return m_turns - m_turns_gone;
}

}  // namespace swimstore
