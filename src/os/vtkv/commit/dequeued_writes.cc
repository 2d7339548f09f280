// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/dequeued_writes.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

bool DequeuedWrites::take(CommitQueue& queue, uint64_t now_us, std::chrono::microseconds* wait) {
  m_batch_of_queue.clear();
  queue.dequeue(now_us, &m_batch_of_queue, wait);
  if (m_batch_of_queue.empty()) {
    return false;
  }
  const size_t first = m_writes.size();
  for (QueuedWrite& write : m_batch_of_queue) {
    if (write.submission && !write.submission->fragments.empty()) {
      add_fragments(write.submission);
      continue;
    }
    DequeuedWrite& dequeued = m_writes.emplace_back();
    dequeued.submission = write.submission;
    dequeued.write_buffer = std::move(write.write_buffer);
    dequeued.last_sequence =
        dequeued.write_buffer ? dequeued.write_buffer->last_sequence : dequeued.submission->last_sequence;
    m_ungrouped_bytes += dequeued.encoded().size();
  }
  m_ungrouped += m_writes.size() - first;
  m_ungrouped_waiters +=
      static_cast<size_t>(std::count_if(m_writes.begin() + static_cast<ptrdiff_t>(first), m_writes.end(),
                                        [](const DequeuedWrite& write) { return write.has_waiter(); }));
  return true;
}

void DequeuedWrites::add_fragments(Submission* submission) {
  SequenceNumber last = submission->last_sequence;
  for (const WriteBatch::Fragment& fragment : submission->fragments) {
    last -= fragment.sequence_count;
  }
  for (const WriteBatch::Fragment& fragment : submission->fragments) {
    DequeuedWrite& dequeued = m_writes.emplace_back();
    dequeued.fragment = &fragment;
    dequeued.last_sequence = last += fragment.sequence_count;
    m_ungrouped_bytes += fragment.encoded.size();
  }
  m_writes.back().submission = submission;
}

std::deque<DequeuedWrite> DequeuedWrites::take_failed(CommitQueue& queue, uint64_t now_us) {
  std::deque<DequeuedWrite> ended;
  ended.swap(m_writes);
  m_ungrouped = 0;
  m_ungrouped_waiters = 0;
  m_ungrouped_bytes = 0;
  queue.close_write_buffer();
  m_batch_of_queue.clear();
  std::chrono::microseconds wait{0};
  queue.dequeue(now_us, &m_batch_of_queue, &wait);
  for (QueuedWrite& write : m_batch_of_queue) {
    ended.emplace_back().submission = write.submission;
    ended.back().write_buffer = std::move(write.write_buffer);
  }
  return ended;
}

void DequeuedWrites::grouped(size_t count, size_t waiters, size_t bytes) {
  VTKV_ASSERT(count <= m_ungrouped && waiters <= m_ungrouped_waiters && bytes <= m_ungrouped_bytes);
  m_ungrouped -= count;
  m_ungrouped_waiters -= waiters;
  m_ungrouped_bytes -= bytes;
}

void DequeuedWrites::forget(size_t count) {
  VTKV_ASSERT(count <= first_ungrouped());
  m_writes.erase(m_writes.begin(), m_writes.begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace vtkv
