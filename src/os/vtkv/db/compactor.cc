// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/compactor.h"

#include <algorithm>

#include "vtkv/tree/tree_failure.h"

namespace vtkv {

namespace {

constexpr std::chrono::microseconds kOthersFirst{1000};  // of what is due, before what has failed

}  // namespace

Status Compactor::compact() {
  const uint64_t wanted = m_compactions_wanted.fetch_add(1) + 1;
  m_errors->hurry(kCompactionWork);
  m_workers->wake(Workers::Role::compaction);
  VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_compactions_done.load() >= wanted; }));
  MutexLock lock(m_lock);
  return m_compact_error;
}

Status Compactor::defragment(const DefragmentOptions& options) {
  uint64_t wanted = 0;
  {
    MutexLock lock(m_lock);
    m_defragment_options = options;
    wanted = ++m_defragments_wanted;
  }
  m_errors->hurry(kCompactionWork);
  m_workers->wake(Workers::Role::compaction);
  VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_defragments_done.load() >= wanted; }));
  MutexLock lock(m_lock);
  return m_defragment_error;
}

NextStep Compactor::step() {
  if (m_pipeline->failed() || m_workers->stopping()) {
    return NextStep::on_event();
  }
  const uint64_t wanted = m_compactions_wanted.load();
  const bool all = wanted > m_compactions_done.load();
  const std::chrono::microseconds pause = m_errors->wait(kCompactionWork);
  if (pause.count() == 0) {
    m_tree->retry_quarantined();
  } else if (m_errors->status(kCompactionWork).is_no_space()) {
    return NextStep::later(pause);
  }
  const SnapshotSource snapshots = [this] { return m_states->snapshots(); };
  bool did = all;
  Status status = all ? m_tree->compact_all(snapshots) : m_tree->compact_once(snapshots, &did);
  std::chrono::microseconds wait{};
  uint64_t ended = 0;
  if (status.ok() && !did) {
    status = defragment_step(&did, &wait, &ended);
  } else if (!status.ok()) {
    // The pass has to wait until compaction works again; whoever waits for it hears why.
    MutexLock lock(m_lock);
    m_defragments_started = m_defragments_wanted;
    ended = m_defragments_wanted > m_defragments_done.load() ? m_defragments_wanted : 0;
  }
  if (m_workers->stopping() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  note(status);
  if (did || !status.ok()) {
    m_states->install_version(nullptr);
    m_workers->wake(Workers::Role::flush);  // tells of the checkpoint
    m_workers->wake(Workers::Role::gc);
  }
  {
    // Other compactions, which succeed, may come before those who wait have looked.
    MutexLock lock(m_lock);
    m_compact_error = all ? status : m_compact_error;
    m_defragment_error = ended > 0 ? status : m_defragment_error;
  }
  if (all) {
    m_compactions_done.store(wanted);
    m_waiters->notify();
  }
  if (ended > 0) {
    m_defragments_done.store(ended);
    m_waiters->notify();
  }
  if (!status.ok() || !did) {
    // Others may be due besides what failed; it is tried again later.
    const std::chrono::microseconds retry = m_errors->wait(kCompactionWork);
    return !status.ok() && !status.is_no_space() ? NextStep::later(std::min(retry, kOthersFirst))
           : retry.count() > 0                   ? NextStep::later(retry)
                                                 : NextStep::on_event();
  }
  return wait.count() > 0 ? NextStep::later(wait) : NextStep::now();
}

void Compactor::note(const Status& status) {
  const Tree::Quarantine quarantine = m_tree->quarantine();
  const bool in_between = status.ok() && quarantine.failures > m_quarantined;
  m_quarantined = quarantine.failures;
  if (!status.ok() || quarantine.status.ok() || in_between) {
    m_errors->note(kCompactionWork, in_between ? quarantine.status : status);
  }
  stop_with_tree(*m_tree, m_pipeline, m_waiters);
}

Status Compactor::defragment_step(bool* did, std::chrono::microseconds* wait, uint64_t* ended) {
  if (!m_defragmenter.running()) {
    DefragmentOptions options;
    {
      MutexLock lock(m_lock);
      if (m_defragments_started == m_defragments_wanted) {
        return {};
      }
      m_defragments_started = m_defragments_wanted;
      options = m_defragment_options;
    }
    m_defragmenter.start(options);
  }
  *did = true;
  const Status status = m_defragmenter.step([this] { return m_states->snapshots(); }, wait);
  *ended = m_defragmenter.running() ? 0 : m_defragments_started;
  return status;
}

}  // namespace vtkv
