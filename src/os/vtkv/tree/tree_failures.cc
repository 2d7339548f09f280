// SPDX-License-Identifier: LGPL-2.1-or-later
// What becomes of a checkpoint or a compaction that fails, of what it wrote, and of the work that comes after it.
#include <algorithm>

#include "vtkv/tree/tree.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

Status Tree::failure() const {
  MutexLock lock(m_lock);
  return m_failure;
}

Status Tree::fail(Status status) {
  MutexLock lock(m_lock);
  if (m_failure.ok()) {
    m_failure = status;
  }
  return status;
}

Status Tree::checkpoint_failed(const Runs& runs, Status status, bool final) {
  if (!mutated(Mutation::doubtful_run_freed)) {
    MutexLock lock(m_lock);
    if (std::find(m_doubtful.begin(), m_doubtful.end(), runs) == m_doubtful.end()) {
      m_doubtful.push_back(runs);
    }
  }
  return final ? fail(std::move(status)) : status;
}

Status Tree::sync_zones() {
  Status status = m_reader.file().sync();
  if (status.ok()) {
    status = m_syncs.check();
  }
  return status.ok() ? status : fail(std::move(status));
}

// --- compactions -------------------------------------------------------------------------------------------

SnapshotSource Tree::listed(const SnapshotSource& snapshots) const {
  return mutated(Mutation::snapshots_listed_early) ? SnapshotSource(snapshots()) : snapshots;
}

void Tree::note_quarantine(const Status& status) {
  {
    MutexLock lock(m_lock);
    if (!status.ok()) {
      m_quarantine_state = {status, m_quarantine_state.failures + 1};
    } else if (!m_policy.any_failed()) {
      m_quarantine_state.status = {};
    }
  }
  m_damage_waits = m_policy.any_waits();
  set_pressure(current_sorted_runs());
}

bool Tree::is_quarantined(const Status& status) {
  return status.is_corruption() || status.code() == Status::Code::io_error ||
         status.code() == Status::Code::unsupported;  // a block that another program wrote
}

Tree::Quarantine Tree::quarantine() const {
  MutexLock lock(m_lock);
  return m_quarantine_state;
}

void Tree::retry_quarantined() {
  MutexLock compaction_lock(m_compaction_lock);
  if (m_policy.any_waits()) {
    m_policy.retry_failed();
    note_quarantine({});
  }
}

// Writing on is no use when the result could not be made durable.
Status Tree::go_on() const {
  return m_stop.load(std::memory_order_relaxed) ? Status::busy("the database is being closed") : failure();
}

}  // namespace vtkv
