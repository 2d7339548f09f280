// SPDX-License-Identifier: LGPL-2.1-or-later
// The database as the collector of the value log sees it (value_gc.h).

#include <algorithm>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/db/db_impl.h"
#include "vtkv/tree/tree_failure.h"

namespace vtkv {

Status DbImpl::collect_garbage(bool full) {
  VTKV_RETURN_IF_ERROR(flush());
  if (full) {
    VTKV_RETURN_IF_ERROR(compact());  // the account of what lives is exact then
  }
  VTKV_RETURN_IF_ERROR(run_gc(full ? ValueGc::Request::full : ValueGc::Request::round));
  VTKV_RETURN_IF_ERROR(flush());  // a checkpoint above the new addresses
  VTKV_RETURN_IF_ERROR(run_gc(ValueGc::Request::settle));
  if (full) {
    VTKV_RETURN_IF_ERROR(m_tree->forget_segments({}));  // the older copy holds what compact() replaced
    m_tree->give_back_zones();
    m_pool->remove_spares();
    m_workers.wake(Workers::Role::log);
  }
  return Status();
}

Status DbImpl::run_gc(ValueGc::Request what) {
  const uint64_t number = m_gc->request(what);
  m_workers.wake(Workers::Role::gc);
  VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_gc->served() >= number; }));
  return m_gc->error();
}

NextStep DbImpl::gc_step(IoQueue& io) {
  if (m_pipeline->failed() || m_workers.stopping()) {
    m_gc->reap(io);  // or the worker would be woken for it again and again
    return NextStep::on_event();
  }
  return m_gc->step(io);
}

std::chrono::microseconds DbImpl::gc_outcome(const Status& status) {
  m_errors.note(kCollectWork, status);
  stop_with_tree(*m_tree, m_pipeline.get(), m_waiters.get());
  return m_errors.wait(kCollectWork);
}

// The sequence comes before the state, other than in get(): all that is at or below it has to be in the state, or
// a put in a memtable that is younger than the state would be neither seen there nor asked for in gc_relocate().
std::shared_ptr<const ReadState> DbImpl::gc_read_state(SequenceNumber* sequence) {
  *sequence = m_states->visible();
  return m_states->current();
}

// Writers and the collector come first.
void DbImpl::relocate_values(const std::vector<Relocation>& values, SequenceNumber checked) {
  uint64_t bytes = 0;
  for (const Relocation& value : values) {
    bytes += value.key.size() + value.value.size();
  }
  // What waits may fill a segment's end in vain.
  const uint64_t waiting = m_pipeline->write_buffer_bytes() + bytes;
  const bool crowded = waiting > unwritten_bytes_most(m_options.memtable_bytes) / 2 || m_gc->pressure() > 1 ||
                       2 * waiting > m_pool->room_bytes();
  SequenceNumber last = 0;
  if (!crowded && m_writes->relocate(values.data(), values.size(), checked, &last).ok()) {
    m_scan_moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

}  // namespace vtkv
