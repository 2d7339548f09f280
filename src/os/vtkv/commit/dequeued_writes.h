// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commit worker took out of the commit queue and nobody was told of yet, in sequence order: first what is in a
// group, then what waits for a record.
//
// Not thread-safe: the commit worker's. Never waits.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "vtkv/commit/commit_queue.h"
#include "vtkv/db.h"

namespace vtkv {

struct CommitGroup;

// A submission or a write buffer that was dequeued, or a fragment of a submission's batch.
struct DequeuedWrite {
  Submission* submission = nullptr;  // with fragments: null in all but the last, so that it is told once
  const WriteBatch::Fragment* fragment = nullptr;
  std::shared_ptr<WriteBuffer> write_buffer;  // instead of a submission; until it is in the file
  SequenceNumber last_sequence = 0;
  uint32_t data_left = 0;  // data requests in flight
  size_t data_bytes = 0;
  CommitGroup* group = nullptr;
  bool acknowledged = false;
  std::vector<File*> sync_files;  // need a sync of their own
  // Primed data on another file system than the log: one sync of any file there covers it. Null: none.
  File* primed_elsewhere = nullptr;

  uint32_t sequence_count() const {
    return fragment       ? fragment->sequence_count
           : write_buffer ? write_buffer->sequence_count()
                          : submission->batch.sequence_count();
  }
  std::string_view encoded() const {
    return fragment ? fragment->encoded : write_buffer ? write_buffer->encoded() : submission->batch.encoded();
  }
  LogAddress* address() const {
    return fragment ? fragment->log_address : write_buffer ? &write_buffer->address : submission->log_address;
  }
  // More fragments of its batch follow.
  bool continues() const { return fragment && !submission; }
  // Somebody waits until it is durable.
  bool has_waiter() const { return submission && !is_relaxed(); }
  bool is_relaxed() const { return submission && submission->relaxed; }
  // Its write takes longer than a record's.
  bool awaits_large_data() const { return data_left > 0 && data_bytes >= kLargeDataBytes; }

 private:
  static constexpr size_t kLargeDataBytes = 256u << 10;
};

class DequeuedWrites {
 public:
  // Takes what is due; false: nothing is. *wait: as CommitQueue::dequeue says. Their addresses stay until they end.
  bool take(CommitQueue& queue, uint64_t now_us, std::chrono::microseconds* wait);
  // Everything that is here or in the queue, when nothing of it will be written any more. Nothing is here then.
  std::deque<DequeuedWrite> take_failed(CommitQueue& queue, uint64_t now_us);

  size_t size() const { return m_writes.size(); }
  DequeuedWrite& operator[](size_t i) { return m_writes[i]; }
  const DequeuedWrite& operator[](size_t i) const { return m_writes[i]; }

  // Of those that wait for a record: the first one, how many, how many of them have a waiter, and their batches' bytes.
  size_t first_ungrouped() const { return m_writes.size() - m_ungrouped; }
  size_t ungrouped() const { return m_ungrouped; }
  size_t ungrouped_waiters() const { return m_ungrouped_waiters; }
  size_t ungrouped_bytes() const { return m_ungrouped_bytes; }
  // The first ones of these are in a group now.
  void grouped(size_t count, size_t waiters, size_t bytes);
  // The first ones of all have ended. REQUIRES: they are in a group.
  void forget(size_t count);

 private:
  void add_fragments(Submission* submission);

  std::deque<DequeuedWrite> m_writes;
  size_t m_ungrouped = 0;  // at the end
  size_t m_ungrouped_waiters = 0;
  size_t m_ungrouped_bytes = 0;
  std::vector<QueuedWrite> m_batch_of_queue;  // scratch
};

}  // namespace vtkv
