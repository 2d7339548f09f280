// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/iter/read_states.h"

#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

void ReadStates::begin(std::shared_ptr<MemTable> active, const std::vector<ClosedMemTable>& closed,
                       SequenceNumber visible) {
  set_visible(visible);
  auto state = std::make_shared<ReadState>();
  state->memtables.push_back(std::move(active));
  state->version = m_tree->current();
  MutexLock lock(m_lock);
  for (const ClosedMemTable& one : closed) {
    state->memtables.insert(state->memtables.begin() + 1, one.memtable);
    m_closed_bytes.fetch_add(one.memtable->memory_bytes());
    m_closed.push_back(one);
  }
  m_closed_count.store(m_closed.size());
  m_state = std::move(state);
}

SequenceNumber ReadStates::oldest_snapshot() const {
  const std::vector<SequenceNumber> sequences = snapshots();
  return sequences.empty() ? UINT64_MAX : sequences.front();
}

void ReadStates::switch_memtable(std::shared_ptr<MemTable> closed, SequenceNumber last_sequence,
                                 std::shared_ptr<MemTable> fresh) {
  MutexLock lock(m_lock);
  auto state = std::make_shared<ReadState>(*m_state);
  VTKV_ASSERT(state->memtables.front() == closed);
  state->memtables.insert(state->memtables.begin(), std::move(fresh));
  m_closed_bytes.fetch_add(closed->memory_bytes());
  m_closed.push_back({std::move(closed), last_sequence});
  m_closed_count.store(m_closed.size());
  m_state = std::move(state);
}

ClosedMemTable ReadStates::oldest_closed() const {
  MutexLock lock(m_lock);
  return m_closed.empty() ? ClosedMemTable() : m_closed.front();
}

void ReadStates::install_version(const MemTable* flushed) {
  std::shared_ptr<const ReadState> old;  // ends behind the lock, and with it the memtable or runs
  MutexLock lock(m_lock);
  auto state = std::make_shared<ReadState>(*m_state);
  state->version = m_tree->current();
  if (flushed) {
    VTKV_ASSERT(!m_closed.empty() && m_closed.front().memtable.get() == flushed);
    std::erase_if(state->memtables, [&](const auto& memtable) { return memtable.get() == flushed; });
    m_closed_bytes.fetch_sub(flushed->memory_bytes());
    m_closed.pop_front();
    m_closed_count.store(m_closed.size());
  }
  old = std::exchange(m_state, std::move(state));
}

uint64_t ReadStates::start_reader_epoch() {
  MutexLock lock(m_lock);
  auto state = std::make_shared<ReadState>(*m_state);
  state->reader_epoch = std::make_shared<const int>(0);
  m_reader_epochs[m_reader_epoch] = m_state->reader_epoch;
  m_state = std::move(state);
  return m_reader_epoch++;
}

bool ReadStates::reader_epoch_has_ended(uint64_t reader_epoch) {
  MutexLock lock(m_lock);
  std::erase_if(m_reader_epochs, [](const auto& entry) { return entry.second.expired(); });
  return m_reader_epochs.empty() || m_reader_epochs.begin()->first > reader_epoch;
}

}  // namespace vtkv
