// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_progress.h"

#include <algorithm>

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

void CommitProgress::enqueued(SequenceNumber last) {
  VTKV_ASSERT(last >= m_enqueued.load());
  m_enqueued.store(last);
}

void CommitProgress::advance_logged(SequenceNumber to) { m_logged.store(std::max(m_logged.load(), to)); }

// It never moves back. (Where a mutation moves it over a later group first, the earlier ones change nothing.)
void CommitProgress::advance_durable(SequenceNumber to) {
  const SequenceNumber before = m_durable.load();
  VTKV_ASSERT(to >= before || mutated(Mutation::watermark_per_group));
  VTKV_ASSERT(to <= m_enqueued.load());
  m_durable.store(std::max(before, to));
}

SequenceNumber CommitProgress::reuse_horizon() const {
  return mutated(Mutation::slot_reused_at_once) ? m_enqueued.load() : m_horizon.load();
}

bool CommitProgress::raise_horizon(SequenceNumber horizon) {
  VTKV_ASSERT(horizon <= m_durable.load() || mutated(Mutation::memtable_flushed_early) ||
              mutated(Mutation::watermark_ahead_of_flush));
  SequenceNumber before = m_horizon.load();
  while (before < horizon) {
    if (m_horizon.compare_exchange_weak(before, horizon)) {
      return true;
    }
  }
  return false;
}

}  // namespace vtkv
