#include "vtkv/db/commit_queue.h"

#include <algorithm>
#include <iterator>

namespace vtkv {

size_t CommitQueue::enqueue(Submission* submission) {
  std::lock_guard lock(m_lock);
  m_writes.push_back({submission, nullptr});
  m_open = false;
  return m_waiting.fetch_add(1) + 1;
}

bool CommitQueue::append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last, uint64_t now_us,
                         std::shared_ptr<Bulk>* bulk, std::string_view* copy) {
  std::shared_ptr<Bulk> fresh;
  {
    std::lock_guard lock(m_lock);
    if (m_open && m_writes.back().bulk->fits(encoded.size())) {
      *bulk = m_writes.back().bulk;
      *copy = (*bulk)->append(encoded, sequence_count, last);
      return false;
    }
    m_open = false;
  }
  fresh = std::make_shared<Bulk>(std::max(m_bulk_bytes, encoded.size()));
  fresh->opened_us = now_us;
  *copy = fresh->append(encoded, sequence_count, last);
  *bulk = fresh;
  std::lock_guard lock(m_lock);
  m_writes.push_back({nullptr, std::move(fresh)});
  m_open = true;
  return true;
}

void CommitQueue::close_bulk() {
  std::lock_guard lock(m_lock);
  m_open = false;
}

void CommitQueue::take(uint64_t now_us, std::vector<QueuedWrite>* taken, std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  std::lock_guard lock(m_lock);
  if (m_writes.empty()) {
    return;
  }
  QueuedWrite open;
  if (m_open) {
    const uint64_t due_us = m_writes.back().bulk->opened_us + static_cast<uint64_t>(kLinger.count());
    if (now_us < due_us) {
      *wait = std::chrono::microseconds(due_us - now_us);
      open = std::move(m_writes.back());
      m_writes.pop_back();
    }
  }
  std::move(m_writes.begin(), m_writes.end(), std::back_inserter(*taken));
  m_writes.clear();
  m_waiting.store(0);
  if (open.bulk) {
    m_writes.push_back(std::move(open));
  } else {
    m_open = false;
  }
}

bool CommitQueue::empty() const {
  std::lock_guard lock(m_lock);
  return m_writes.empty();
}

void CommitQueue::request_boundary(SequenceNumber sequence) {
  std::lock_guard lock(m_lock);
  m_open = false;
  if (m_formed.sequence == sequence) {
    m_boundary_positions[sequence] = m_formed;
  } else {
    m_boundaries.push_back(sequence);
  }
}

SequenceNumber CommitQueue::next_boundary() const {
  std::lock_guard lock(m_lock);
  return m_boundaries.empty() ? UINT64_MAX : m_boundaries.front();
}

void CommitQueue::record_formed(const LogPosition& position) {
  std::lock_guard lock(m_lock);
  m_formed = position;
  while (!m_boundaries.empty() && m_boundaries.front() == position.sequence) {
    m_boundary_positions[position.sequence] = position;
    m_boundaries.pop_front();
  }
}

bool CommitQueue::boundary_position(SequenceNumber sequence, LogPosition* position) const {
  std::lock_guard lock(m_lock);
  const auto found = m_boundary_positions.find(sequence);
  if (found == m_boundary_positions.end()) {
    return false;
  }
  *position = found->second;
  return true;
}

void CommitQueue::forget_boundaries_before(SequenceNumber sequence) {
  std::lock_guard lock(m_lock);
  m_boundary_positions.erase(m_boundary_positions.begin(), m_boundary_positions.lower_bound(sequence));
}

}  // namespace vtkv
