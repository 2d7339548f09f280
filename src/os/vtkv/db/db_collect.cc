// SPDX-License-Identifier: LGPL-2.1-or-later
// The database as the collector of the value log sees it (value_gc.h).

#include <algorithm>

#include "vtkv/db/db_impl.h"
#include "vtkv/util/mutations.h"
#include "vtkv/wal/write_buffer.h"

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
    wake(Role::log);
  }
  return Status();
}

Status DbImpl::run_gc(ValueGc::Request what) {
  const uint64_t number = m_gc->request(what);
  wake(Role::gc);
  VTKV_RETURN_IF_ERROR(wait_until([&] { return m_gc->served() >= number; }));
  return m_gc->error();
}

NextStep DbImpl::gc_step(IoQueue& io) {
  if (m_pipeline->failed() || m_stopping.load()) {
    m_gc->reap(io);  // or the worker would be woken for it again and again
    return NextStep::on_event();
  }
  return m_gc->step(io);
}

std::chrono::microseconds DbImpl::gc_outcome(const Status& status) {
  m_errors.note(kCollectWork, status);
  stop_with_tree();
  return m_errors.wait(kCollectWork);
}

// The sequence comes before the state, other than in get(): all that is at or below it has to be in the state, or
// a put in a memtable that is younger than the state would be neither seen there nor asked for in gc_relocate().
std::shared_ptr<const ReadState> DbImpl::gc_read_state(SequenceNumber* sequence) {
  *sequence = m_visible.load(std::memory_order_acquire);
  return read_state();
}

Status DbImpl::gc_relocate(const Relocation* first, size_t count, SequenceNumber checked, SequenceNumber* last) {
  WriteBatch batch;
  bool wake_worker = false;
  {
    MutexLock lock(m_write_lock);
    if (m_pipeline->failed()) {
      return m_pipeline->failure();
    }
    // The memtables first: what a flush took away from them since is then above the tree's position.
    const std::shared_ptr<const ReadState> state = read_state();
    if (m_tree->newest_log_position().sequence > checked) {
      return Status::busy("a memtable was flushed meanwhile");
    }
    for (const Relocation* value = first; value < first + count; ++value) {
      const bool newer = !mutated(Mutation::relocation_wins) &&
                         std::any_of(state->memtables.begin(), state->memtables.end(),
                                     [&](const auto& memtable) { return memtable->touches(value->key, checked); });
      if (!newer) {
        batch.put(value->key, value->value);
      }
    }
    wake_worker = !batch.empty() && insert_into_write_buffer(batch);
    *last = m_last_sequence;
  }
  if (wake_worker) {
    m_pipeline->wake();
  }
  return Status();
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
  if (!crowded && gc_relocate(values.data(), values.size(), checked, &last).ok()) {
    m_scan_moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

SequenceNumber DbImpl::gc_oldest_snapshot() {
  const std::vector<SequenceNumber> sequences = m_snapshots.sequences();
  return sequences.empty() ? UINT64_MAX : sequences.front();
}

uint64_t DbImpl::gc_start_reader_epoch() {
  MutexLock lock(m_state_lock);
  auto state = std::make_shared<ReadState>(*m_state);
  state->reader_epoch = std::make_shared<const int>(0);
  m_reader_epochs[m_reader_epoch] = m_state->reader_epoch;
  m_state = std::move(state);
  return m_reader_epoch++;
}

bool DbImpl::gc_reader_epoch_has_ended(uint64_t reader_epoch) {
  MutexLock lock(m_state_lock);
  std::erase_if(m_reader_epochs, [](const auto& entry) { return entry.second.expired(); });
  return m_reader_epochs.empty() || m_reader_epochs.begin()->first > reader_epoch;
}

void DbImpl::gc_released() {
  m_segments_released.store(true);
  wake(Role::flush);
}

}  // namespace vtkv
