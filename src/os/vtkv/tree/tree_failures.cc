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

// A snapshot that was taken since is above everything in the inputs, as for a compaction under way.
Status Tree::install_unlisted(bool* did) {
  Unlisted unlisted;
  const auto next = [&](const Runs& runs, const std::set<uint64_t>& busy) REQUIRES(m_lock) {
    for (const Unlisted& one : m_unlisted) {
      const auto found = std::search(runs.begin(), runs.end(), one.inputs.begin(), one.inputs.end());
      if (found != runs.end() && std::none_of(one.inputs.begin(), one.inputs.end(),
                                              [&](const auto& run) { return busy.contains(run->location().run_id); })) {
        unlisted = one;
        return CompactionChoice{static_cast<size_t>(found - runs.begin()), one.inputs.size(), 0};
      }
    }
    return CompactionChoice();
  };
  *did = false;
  for (Claim claimed; claim(next, &claimed); *did = true) {
    const Status status = install_compaction(unlisted.inputs, unlisted.outputs, unlisted.values);
    give_up(claimed, status);
    VTKV_RETURN_IF_ERROR(status);
  }
  return {};
}

std::vector<Tree::Unlisted> Tree::take_useless_unlisted(const Runs& current) {
  std::vector<Unlisted> useless;
  std::erase_if(m_unlisted, [&](Unlisted& one) {
    const auto found = std::search(current.begin(), current.end(), one.inputs.begin(), one.inputs.end());
    if (found != current.end()) {
      return false;
    }
    useless.push_back(std::move(one));
    return true;
  });
  return useless;
}

Status Tree::flushed_run(const MemTable& memtable, const std::vector<SequenceNumber>& snapshots, ValueDelta* delta,
                         std::shared_ptr<const Run>* run) {
  UnlistedFlush& last = m_unlisted_flush;
  if (last.memtable != &memtable || last.last_sequence != memtable.last_sequence() ||
      last.entries != memtable.entries()) {
    last = {};
    Status status = write_run(memtable, snapshots, delta, run);
    if (spare_space_after(status)) {
      *delta = {};
      status = write_run(memtable, snapshots, delta, run);
      (void)spare_space_after(status);
    }
    VTKV_RETURN_IF_ERROR(std::move(status));
    VTKV_RETURN_IF_ERROR(*run ? sync_zones() : Status());
    last = {&memtable, memtable.last_sequence(), memtable.entries(), *run, *delta};
  }
  *run = last.run;
  *delta = last.values;
  return {};
}

// --- compactions -------------------------------------------------------------------------------------------

SnapshotSource Tree::listed(const SnapshotSource& snapshots) const {
  return mutated(Mutation::snapshots_listed_early) ? SnapshotSource(snapshots()) : snapshots;
}

void Tree::give_up(const Claim& claimed, const Status& status) {
  const bool quarantines = is_quarantined(status);
  (void)spare_space_after(status);
  MutexLock lock(m_lock);
  for (const auto& run : claimed.inputs) {
    const size_t claims = m_busy.erase(run->location().run_id);
    VTKV_ASSERT(claims == 1);
    if (quarantines) {
      m_quarantined[run->location().run_id] = true;
    }
  }
  if (quarantines) {
    m_quarantine_state = {status, m_quarantine_state.failures + 1};
    m_debt_bytes = debt_of(m_current->runs());
  }
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
  MutexLock lock(m_lock);
  if (m_quarantined.empty()) {
    return;
  }
  for (auto& [id, waits] : m_quarantined) {
    waits = false;
  }
  m_debt_bytes = debt_of(m_current->runs());
}

void Tree::forget_quarantined(const Runs& current) {
  std::erase_if(m_quarantined, [&](const auto& entry) {
    return std::none_of(current.begin(), current.end(),
                        [&](const auto& run) { return run->location().run_id == entry.first; });
  });
  if (m_quarantined.empty()) {
    m_quarantine_state.status = Status();
  }
}

// Writers are slowed for what compactions can still do, and for nothing else.
uint64_t Tree::debt_of(const Runs& runs) const {
  Runs rest = runs;
  std::erase_if(rest, [this](const auto& run) REQUIRES(m_lock) {
    const auto found = m_quarantined.find(run->location().run_id);
    return found != m_quarantined.end() && found->second;
  });
  return vtkv::compaction_debt(rest, m_shape);
}

// Writing on is no use when the result could not be made durable.
Status Tree::go_on() const {
  return m_stop.load(std::memory_order_relaxed) ? Status::busy("the database is being closed") : failure();
}

}  // namespace vtkv
