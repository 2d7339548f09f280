// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/collection/op_sequencer.h"

#include <algorithm>
#include <utility>

namespace swimstore {

// The commit may be reported before queueing has returned: only the greatest of each count.

OpSequencer::Progress& OpSequencer::of(unsigned cube) {
  if (cube >= m_progress.size()) {
    m_progress.resize(cube + 1);
  }
  return m_progress[cube];
}

bool OpSequencer::prepare_relaxed(unsigned cube, Relaxed* relaxed) {
  vtkv::MutexLock lock(m_mutex);
  relaxed->m_behind = of(cube).strict;
  return is_idle_but_in(cube);
}

void OpSequencer::submitted(unsigned cube, vtkv::SequenceNumber sequence, bool relaxed) {
  vtkv::MutexLock lock(m_mutex);
  Progress& progress = of(cube);
  progress.submitted = std::max(progress.submitted, sequence);
  if (!relaxed) {
    progress.strict = std::max(progress.strict, sequence);
  }
}

bool OpSequencer::written(unsigned cube, Relaxed* relaxed) {
  vtkv::MutexLock lock(m_mutex);
  Progress& progress = of(cube);
  if (progress.committed >= relaxed->m_behind) {
    return true;
  }
  progress.untold.push_back(relaxed);
  return false;
}

void OpSequencer::committed(unsigned cube, vtkv::SequenceNumber sequence, std::list<Context*>* ready) {
  boost::container::small_vector<Relaxed*, 4> allowed;
  {
    vtkv::MutexLock lock(m_mutex);
    Progress& progress = of(cube);
    progress.committed = std::max(progress.committed, sequence);
    while (!m_waiters.empty() && is_satisfied(m_waiters.front())) {
      ready->push_back(m_waiters.front().context);
      m_waiters.pop_front();
    }
    if (m_waiting_threads > 0) {
      m_committed_elsewhere->notify_all();
    }
    for (; !progress.untold.empty() && progress.untold.front()->m_behind <= progress.committed;
         progress.untold.pop_front()) {
      allowed.push_back(progress.untold.front());
    }
  }
  for (Relaxed* const relaxed : allowed) {
    relaxed->tell();
  }
}

bool OpSequencer::is_satisfied(const Waiter& waiter) const {
  for (size_t cube = 0; cube < waiter.until.size(); ++cube) {
    if (m_progress[cube].committed < waiter.until[cube]) {
      return false;
    }
  }
  return true;
}

bool OpSequencer::flush_commit(Context* context) {
  vtkv::MutexLock lock(m_mutex);
  Waiter waiter;
  waiter.context = context;
  for (const Progress& progress : m_progress) {
    waiter.until.push_back(progress.submitted);
  }
  if (is_satisfied(waiter)) {
    return true;
  }
  m_waiters.push_back(std::move(waiter));
  return false;
}

bool OpSequencer::is_idle_but_in(unsigned cube) const {
  for (size_t other = 0; other < m_progress.size(); ++other) {
    if (other != cube && !m_progress[other].is_idle()) {
      return false;
    }
  }
  return true;
}

void OpSequencer::failed() {
  vtkv::MutexLock lock(m_mutex);
  m_failed = true;
  m_committed_elsewhere->notify_all();
}

bool OpSequencer::wait_for_others(unsigned cube) {
  vtkv::MutexLock lock(m_mutex);
  if (!m_failed && !is_idle_but_in(cube)) {
    ++m_waiting_threads;
    m_committed_elsewhere->wait(lock, [this, cube]() REQUIRES(m_mutex) { return m_failed || is_idle_but_in(cube); });
    --m_waiting_threads;
  }
  return !m_failed;
}

}  // namespace swimstore
