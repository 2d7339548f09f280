// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/commit_queue.h"

#include <algorithm>
#include <iterator>

#include "vtkv/util/invariants.h"

namespace vtkv {

CommitQueue::Waiting CommitQueue::enqueue(Submission* submission) {
  const size_t waiters = submission->relaxed ? 0 : 1;
  size_t data_bytes = 0;
  for (const ExternalData& data : submission->data) {
    for (const iovec& buffer : data.buffers) {
      data_bytes += buffer.iov_len;
    }
  }
  MutexLock lock(m_lock);
  m_writes.push_back({submission, nullptr});
  m_open = false;
  m_data_bytes += data_bytes;
  return {m_waiting.fetch_add(waiters) + waiters, m_data_bytes};
}

bool CommitQueue::append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last, uint64_t now_us,
                         std::shared_ptr<WriteBuffer>* write_buffer, std::string_view* copy) {
  std::shared_ptr<WriteBuffer> fresh;
  {
    MutexLock lock(m_lock);
    if (m_open && m_writes.back().write_buffer->fits(encoded.size())) {
      *write_buffer = m_writes.back().write_buffer;
      *copy = (*write_buffer)->append(encoded, sequence_count, last);
      return false;
    }
    m_open = false;
  }
  fresh = std::make_shared<WriteBuffer>(std::max(m_write_buffer_bytes, encoded.size()));
  fresh->opened_us = now_us;
  *copy = fresh->append(encoded, sequence_count, last);
  *write_buffer = fresh;
  MutexLock lock(m_lock);
  m_writes.push_back({nullptr, std::move(fresh)});
  m_open = true;
  return true;
}

void CommitQueue::close_write_buffer() {
  MutexLock lock(m_lock);
  m_open = false;
}

void CommitQueue::dequeue(uint64_t now_us, std::vector<QueuedWrite>* dequeued, std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  MutexLock lock(m_lock);
  if (m_writes.empty()) {
    return;
  }
  QueuedWrite open;
  if (m_open) {
    const uint64_t due_us = m_writes.back().write_buffer->opened_us + static_cast<uint64_t>(kLinger.count());
    if (now_us < due_us) {
      *wait = std::chrono::microseconds(due_us - now_us);
      open = std::move(m_writes.back());
      m_writes.pop_back();
    }
  }
  std::move(m_writes.begin(), m_writes.end(), std::back_inserter(*dequeued));
  m_writes.clear();
  m_waiting.store(0);
  m_data_bytes = 0;
  if (open.write_buffer) {
    m_writes.push_back(std::move(open));
  } else {
    m_open = false;
  }
}

void CommitQueue::request_flush_point(SequenceNumber sequence) {
  MutexLock lock(m_lock);
  VTKV_ASSERT(sequence >= m_formed.sequence);
  VTKV_ASSERT(m_flush_points.empty() || sequence >= m_flush_points.back());
  m_open = false;
  m_newest_flush_point.store(sequence);
  if (m_formed.sequence == sequence) {
    m_flush_point_positions[sequence] = m_formed;
  } else {
    m_flush_points.push_back(sequence);
  }
}

SequenceNumber CommitQueue::next_flush_point() const {
  MutexLock lock(m_lock);
  return m_flush_points.empty() ? UINT64_MAX : m_flush_points.front();
}

void CommitQueue::record_formed(const LogPosition& position) {
  MutexLock lock(m_lock);
  VTKV_ASSERT(position.sequence >= m_formed.sequence);
  VTKV_ASSERT(m_flush_points.empty() || position.sequence <= m_flush_points.front());
  m_formed = position;
  while (!m_flush_points.empty() && m_flush_points.front() == position.sequence) {
    m_flush_point_positions[position.sequence] = position;
    m_flush_points.pop_front();
  }
}

void CommitQueue::start_after(const LogPosition& position) {
  MutexLock lock(m_lock);
  m_formed = position;
}

void CommitQueue::add_flush_point(const LogPosition& position) {
  MutexLock lock(m_lock);
  VTKV_ASSERT(position.sequence <= m_formed.sequence && position.sequence >= m_newest_flush_point.load());
  m_newest_flush_point.store(position.sequence);
  m_flush_point_positions[position.sequence] = position;
}

bool CommitQueue::flush_point_position(SequenceNumber sequence, LogPosition* position) const {
  MutexLock lock(m_lock);
  const auto found = m_flush_point_positions.find(sequence);
  if (found == m_flush_point_positions.end()) {
    return false;
  }
  *position = found->second;
  return true;
}

void CommitQueue::forget_flush_points_before(SequenceNumber sequence) {
  MutexLock lock(m_lock);
  m_flush_point_positions.erase(m_flush_point_positions.begin(), m_flush_point_positions.lower_bound(sequence));
}

}  // namespace vtkv
