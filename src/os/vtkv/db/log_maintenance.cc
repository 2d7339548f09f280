// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/log_maintenance.h"

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

LogMaintenance::LogMaintenance(const Options& options, Tree* tree, SegmentPool* pool, ReadStates* states,
                               CommitPipeline* pipeline, BackgroundErrors* errors, Workers* workers)
    : m_options(options),
      m_tree(tree),
      m_pool(pool),
      m_states(states),
      m_pipeline(pipeline),
      m_errors(errors),
      m_workers(workers),
      m_told_checkpoint(tree->oldest_log_position().sequence),
      m_release_below(tree->oldest_log_position().epoch) {}

// Both manifest copies hold everything up to the oldest position: the log before it may go when nobody reads there. No
// run leads to a value that was put and overwritten in one memtable, so that no account knows its segment; but who has
// begun to read while that memtable was there is still led to it.
void LogMaintenance::tell_checkpoint() {
  const uint64_t requested = m_removals_requested.load();
  const LogPosition oldest = m_tree->oldest_log_position();
  if (oldest.sequence > m_told_checkpoint) {
    m_told_checkpoint = oldest.sequence;
    Release release{oldest.epoch, {}};
    if (m_options.value_separation_bytes > 0 && !mutated(Mutation::read_segment_recycled)) {
      release.reader_epoch = m_states->start_reader_epoch();
    }
    m_releases.push_back(release);
    if (m_options.participant) {
      m_options.participant->checkpoint_durable(oldest.sequence);
    }
  }
  release_unread();
  if (!m_release_is_due && !m_segments_freed.load() && m_released.exchange(requested) != requested) {
    m_workers->wake(Workers::Role::log);
  }
}

void LogMaintenance::release_unread() {
  while (!m_releases.empty() &&
         (!m_releases.front().reader_epoch || m_states->reader_epoch_has_ended(*m_releases.front().reader_epoch))) {
    VTKV_ASSERT(m_releases.front().below_epoch >= m_release_below);
    m_release_below = m_releases.front().below_epoch;
    m_releases.pop_front();
    m_release_is_due = true;
  }
  if (!m_release_is_due && !m_segments_freed.load()) {
    return;
  }
  if (!m_files_lock.try_lock()) {
    return;
  }
  MutexLock lock(m_files_lock, std::adopt_lock);
  m_release_is_due = false;
  m_segments_freed.store(false);
  m_pool->release_before(m_release_below, m_tree->listed_epochs());
  lock.unlock();
  m_workers->wake(Workers::Role::log);
}

uint64_t LogMaintenance::request_removal() {
  m_errors->hurry(kSegmentsWork);
  m_pool->remove_spares();
  const uint64_t number = m_removals_requested.fetch_add(1) + 1;
  m_workers->wake(Workers::Role::flush);
  return number;
}

void LogMaintenance::segments_freed() {
  m_segments_freed.store(true);
  m_workers->wake(Workers::Role::flush);
}

void LogMaintenance::while_files_stay(const std::function<void()>& read) {
  {
    MutexLock lock(m_files_lock);
    read();
  }
  m_workers->wake(Workers::Role::flush);
  m_workers->wake(Workers::Role::log);
}

NextStep LogMaintenance::step() {
  bool did = false;
  if (m_pipeline->failed() || m_workers->stopping() || !m_files_lock.try_lock()) {
    return NextStep::on_event();
  }
  MutexLock lock(m_files_lock, std::adopt_lock);
  const uint64_t released = m_released.load();
  if (const std::chrono::microseconds wait = m_errors->wait(kSegmentsWork); wait.count() > 0) {
    m_removed.store(released);
    return NextStep::later(wait);
  }
  const Status status = m_pool->work_ahead(&did);
  if (m_workers->stopping() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  m_errors->note(kSegmentsWork, status);
  if (!did || !status.ok()) {
    m_removed.store(released);
  }
  if (!status.ok()) {
    if (m_tree->spare_space_after(status)) {
      m_workers->wake(Workers::Role::flush);  // tells of the checkpoint
    }
    return NextStep::later(m_errors->wait(kSegmentsWork));  // who needs a segment meets the error
  }
  return did ? NextStep::now() : NextStep::on_event();
}

}  // namespace vtkv
