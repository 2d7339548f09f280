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

uint64_t Compactor::begin_defragment(const DefragmentOptions& options) {
  uint64_t wanted = 0;
  {
    MutexLock lock(m_lock);
    m_defragment_options = options;
    wanted = ++m_defragments_wanted;
  }
  m_errors->hurry(kCompactionWork);
  m_workers->wake(Workers::Role::compaction);
  return wanted;
}

void Compactor::stop_defragment() {
  {
    MutexLock lock(m_lock);
    m_defragments_stopped = m_defragments_wanted;
  }
  m_workers->wake(Workers::Role::compaction);
}

Status Compactor::defragment(const DefragmentOptions& options) {
  const uint64_t wanted = begin_defragment(options);
  VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_defragments_done.load() >= wanted; }));
  MutexLock lock(m_lock);
  return m_defragment_error;
}

// A pass is under way until its end was told.
DefragmentReport Compactor::defragment_report() const {
  MutexLock lock(m_lock);
  DefragmentReport report;
  if (m_defragments_started == m_defragments_wanted) {
    report = m_defragmenter.report();
  }
  const bool is_over = m_defragments_done.load() == m_defragments_wanted;
  report.error = is_over ? m_defragment_error : stopped();
  report.is_running = !is_over && report.error.ok();
  return report;
}

Status Compactor::stopped() const {
  return m_pipeline->failed()    ? m_pipeline->fatal_error().status()
         : m_workers->stopping() ? Status::busy("the database is being closed")
                                 : Status();
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
  bool let_go = false, did = all;
  Status status = m_tree->let_go_while_short(&let_go);
  if (status.ok()) {
    status = all ? m_tree->compact_all(snapshots) : m_tree->compact_once(snapshots, &did);
  }
  did = did || let_go;
  std::chrono::microseconds wait{};
  uint64_t ended = 0;
  if (status.ok() && !did) {
    status = defragment_step(&did, &wait, &ended);
  } else if (!status.ok()) {
    // A pass would have to wait until compaction works again. Whoever waits for it hears why.
    m_defragmenter.stop();
    MutexLock lock(m_lock);
    ended = m_defragments_wanted > m_defragments_done.load() ? m_defragments_wanted : 0;
  }
  if (m_workers->stopping() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  const bool gives_back = m_has_emptied_zones && status.ok() && !m_defragmenter.running();
  if (gives_back) {
    status = m_tree->give_back_zones();
    m_has_emptied_zones = !status.ok();
  }
  if (did || gives_back || !status.ok()) {
    m_states->install_version(nullptr);
    m_workers->wake(Workers::Role::gc);
  }
  note(status);
  m_workers->wake(Workers::Role::flush);  // tells of the checkpoint, and may have waited for the compaction
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
  // Others may be due besides what failed; it is tried again later.
  const std::chrono::microseconds retry = m_errors->wait(kCompactionWork);
  if (!status.ok() && !status.is_no_space()) {
    return NextStep::later(std::min(retry, kOthersFirst));
  }
  if (status.ok() && wait.count() > 0) {
    return NextStep::later(retry.count() > 0 ? std::min(retry, wait) : wait);
  }
  return status.ok() && did ? NextStep::now() : retry.count() > 0 ? NextStep::later(retry) : NextStep::on_event();
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
  DefragmentOptions options;
  uint64_t pass = 0;
  bool begins = false, stops = false;
  {
    MutexLock lock(m_lock);
    if (m_defragments_done.load() == m_defragments_wanted) {
      return {};
    }
    pass = m_defragments_wanted;
    begins = m_defragments_started < pass;
    stops = m_defragments_stopped == pass;
    options = m_defragment_options;
  }
  if (begins) {
    m_defragmenter.start(options);
    m_defragment_resumes_us = 0;
    MutexLock lock(m_lock);
    m_defragments_started = pass;
  }
  if (stops) {
    m_defragmenter.stop();
  }
  if (!m_defragmenter.running()) {
    *ended = pass;
    return {};
  }
  const uint64_t now_us = m_env->now_us();
  if (now_us < m_defragment_resumes_us) {  // somebody woke the worker
    *wait = std::chrono::microseconds(m_defragment_resumes_us - now_us);
    return {};
  }
  *did = true;
  const Status status = m_defragmenter.step([this] { return m_states->snapshots(); }, wait);
  m_has_emptied_zones |= m_defragmenter.report().moved_bytes > 0;
  m_defragment_resumes_us = now_us + static_cast<uint64_t>(wait->count());
  *ended = m_defragmenter.running() ? 0 : pass;
  return status;
}

}  // namespace vtkv
