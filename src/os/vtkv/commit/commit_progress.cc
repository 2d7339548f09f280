// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_progress.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

void CommitProgress::enqueued(SequenceNumber last) {
  VTKV_ASSERT(last >= m_enqueued.load());
  m_enqueued.store(last);
}

void CommitProgress::advance_logged(SequenceNumber to) { m_logged.store(std::max(m_logged.load(), to)); }

// It never moves back. (Where a mutation moves it over a later group first, the earlier ones change nothing.)
void CommitProgress::advance_durable(SequenceNumber to) {
  const SequenceNumber before = m_durable.load();
  VTKV_ASSERT(to >= before || m_options.mutations.durable_per_group);
  VTKV_ASSERT(to <= m_enqueued.load());
  m_durable.store(std::max(before, to));
}

SequenceNumber CommitProgress::reuse_horizon() const {
  return m_options.mutations.reuse_immediately ? m_enqueued.load() : m_horizon.load();
}

bool CommitProgress::raise_horizon(SequenceNumber horizon) {
  VTKV_ASSERT(horizon <= m_durable.load() || m_options.mutations.flush_memtable_early ||
              m_options.mutations.watermark_ahead_of_flush);
  SequenceNumber before = m_horizon.load();
  while (before < horizon) {
    if (m_horizon.compare_exchange_weak(before, horizon)) {
      return true;
    }
  }
  return false;
}

}  // namespace vtkv
