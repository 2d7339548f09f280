// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/db/flusher.h"

#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

constexpr std::chrono::microseconds kHeldOpen{1000};
constexpr std::chrono::microseconds kReadersGone{20000};    // between two looks
constexpr std::chrono::microseconds kCompactionGone{5000};  // likewise, beside the wake-up after each step

}  // namespace

Status Flusher::flush() {
  const uint64_t failures = m_failures.load();
  m_errors->hurry(kFlushWork);
  const uint64_t wanted = m_writes->close_memtable();
  m_pipeline->wake();
  m_workers->wake(Workers::Role::flush);
  if (m_pipeline->failed()) {
    return m_pipeline->failure();
  }
  VTKV_RETURN_IF_ERROR(
      m_waiters->wait_until([&] { return m_memtables_flushed.load() >= wanted || m_failures.load() > failures; }));
  MutexLock lock(m_lock);
  return m_memtables_flushed.load() >= wanted ? Status() : m_error;
}

void Flusher::request() {
  m_wanted.store(true);
  m_workers->wake(Workers::Role::flush);
}

void Flusher::request_checkpoint() {
  m_manifest_copies_wanted.store(2);
  m_workers->wake(Workers::Role::flush);
}

NextStep Flusher::step() {
  if (m_pipeline->failed()) {
    return NextStep::on_event();
  }
  if (m_written) {
    finish_flush();
    return NextStep::now();
  }
  m_log->tell_checkpoint();
  if (m_wanted.exchange(false)) {
    (void)m_writes->close_memtable();
  }
  if (m_states->closed_count() == 0 && m_manifest_copies_wanted.load() > 0) {
    m_manifest_copies_wanted.fetch_sub(1);
    (void)m_writes->close_memtable();
  }
  const ClosedMemTable closed = m_states->oldest_closed();
  if (!closed.memtable || m_workers->stopping()) {
    return idle();
  }
  if (const std::chrono::microseconds wait = m_errors->wait(kFlushWork); wait.count() > 0) {
    return NextStep::later(wait);
  }
  LogPosition position;
  const bool formed = m_pipeline->flush_point_position(closed.last_sequence, &position);
  if (mutated(Mutation::memtable_flushed_early)) {
    return formed ? flush_one(closed, position) : NextStep::later(std::chrono::microseconds(10));
  }
  // The tree must never hold what a crash could take back: a memtable is flushed when all of it is at or below
  // durable_seq. The commit worker wakes us.
  if (!formed || closed.last_sequence > m_pipeline->durable_sequence()) {
    return idle();
  }
  if (waits_for_compaction(*closed.memtable)) {
    m_workers->wake(Workers::Role::compaction);
    return NextStep::later(kCompactionGone);
  }
  return flush_one(closed, position);
}

// Each flush adds to what compaction has to go through. Where compaction cannot work, waiting for it would not help.
bool Flusher::waits_for_compaction(const MemTable& memtable) const {
  return !memtable.empty() && m_tree->compaction_pressure() >= 1 && m_errors->status(kCompactionWork).ok();
}

NextStep Flusher::flush_one(const ClosedMemTable& closed, const LogPosition& position) {
  const Status status = m_tree->flush(*closed.memtable, position, m_states->snapshots());
  if (!status.ok()) {
    return flush_failed(status);
  }
  m_errors->note(kFlushWork, status);
  m_written = closed;
  // The mutation's window, held open: so few histories would meet it that one would wait long for it.
  return mutated(Mutation::candidate_looked_up_behind_memtable) ? NextStep::later(kHeldOpen) : NextStep::now();
}

NextStep Flusher::flush_failed(const Status& status) {
  if (m_workers->stopping() && status.code() == Status::Code::busy) {
    return NextStep::on_event();
  }
  m_errors->note(kFlushWork, status);
  {
    MutexLock lock(m_lock);
    m_error = status;
  }
  m_failures.fetch_add(1);
  if (is_list_full(status)) {
    m_workers->wake(Workers::Role::compaction);  // both may make room
    m_workers->wake(Workers::Role::gc);
  }
  if (!status.is_no_space()) {
    m_pipeline->fail(status);
  }
  m_writes->notify_room();
  m_waiters->notify();
  return status.is_no_space() ? NextStep::later(m_errors->wait(kFlushWork)) : NextStep::on_event();
}

// A step of its own: others run between the checkpoint and this, on the host as in the simulator.
void Flusher::finish_flush() {
  const ClosedMemTable closed = std::move(*m_written);
  m_written.reset();
  m_states->install_version(closed.memtable.get());
  m_pipeline->forget_flush_points_before(closed.last_sequence);
  // The older copy's: a recovery may have to fall back to it, and checks data from there on.
  m_pipeline->checkpoint_advanced(m_tree->oldest_log_position().sequence);
  m_memtables_flushed.fetch_add(1);
  m_pipeline->wake_unless_stopped();  // both may have waited for the memory
  m_writes->notify_room();
  m_log->tell_checkpoint();
  m_workers->wake(Workers::Role::compaction);
  m_workers->wake(Workers::Role::gc);
  m_waiters->notify();
}

NextStep Flusher::idle() const {
  return m_log->awaits_readers() ? NextStep::later(kReadersGone) : NextStep::on_event();
}

}  // namespace vtkv
