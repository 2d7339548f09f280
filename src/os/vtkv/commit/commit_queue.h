// SPDX-License-Identifier: LGPL-2.1-or-later
// What was submitted and not yet dequeued by the commit worker, in sequence order: submissions, each somebody's who
// waits, and write buffers of batches whose writers do not. And the flush points: the sequences at which a memtable was
// closed, where a record has to end so that a checkpoint can name it.
//
// The newest entry may be an open write buffer, which still grows. It is left in the queue for kLinger, so that it is
// written as one, unless somebody waits for what is in it.
//
// Thread-safe; the callers of append and enqueue serialize themselves (the database's write lock).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "vtkv/commit/write_buffer.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"
#include "vtkv/wal/log_position.h"

namespace vtkv {

// One of the two.
struct QueuedWrite {
  Submission* submission = nullptr;
  std::shared_ptr<WriteBuffer> write_buffer;
};

class CommitQueue {
 public:
  static constexpr std::chrono::microseconds kLinger{5000};

  // `write_buffer_bytes`: how large one grows.
  explicit CommitQueue(size_t write_buffer_bytes) : m_write_buffer_bytes(write_buffer_bytes) {}

  // What is there: submissions that somebody waits for, and data of all.
  struct Waiting {
    size_t submissions = 0;
    size_t data_bytes = 0;
  };
  // With this one.
  Waiting enqueue(Submission* submission);
  size_t waiting() const { return m_waiting.load(); }
  // Adds to the open write buffer, or opens one. *copy is where the batch lies in it. True when the worker has to be
  // woken for it.
  bool append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last, uint64_t now_us,
              std::shared_ptr<WriteBuffer>* write_buffer, std::string_view* copy);
  // What one takes that is opened for a batch of so many bytes.
  size_t write_buffer_capacity(size_t batch_bytes) const {
    return std::max(m_write_buffer_bytes, batch_bytes) + kIoAlignment;
  }
  // Nothing more goes into the open write buffer, and it is not left waiting.
  void close_write_buffer();

  // Moves what is due now. *wait: until the rest is due; 0: nothing is left.
  void dequeue(uint64_t now_us, std::vector<QueuedWrite>* dequeued, std::chrono::microseconds* wait);

  // The record that holds `sequence`, the last one submitted, ends with it.
  void request_flush_point(SequenceNumber sequence);
  // The first flush point that no record has reached; UINT64_MAX: none.
  SequenceNumber next_flush_point() const;
  // The last one that was asked for; 0: none.
  SequenceNumber newest_flush_point() const { return m_newest_flush_point.load(); }
  void record_formed(const LogPosition& position);
  // One that lies in the log already.
  void add_flush_point(const LogPosition& position);
  bool flush_point_position(SequenceNumber sequence, LogPosition* position) const;
  void forget_flush_points_before(SequenceNumber sequence);

  // Sets where the log ends before the first record.
  void start_after(const LogPosition& position);

 private:
  const size_t m_write_buffer_bytes;
  mutable Mutex m_lock;
  std::vector<QueuedWrite> m_writes GUARDED_BY(m_lock);
  std::atomic<size_t> m_waiting{0};  // among them, until they are durable; changed under the lock
  size_t m_data_bytes GUARDED_BY(m_lock) = 0;  // of their data
  bool m_open GUARDED_BY(m_lock) = false;  // the last of them is a write buffer that takes more
  std::deque<SequenceNumber> m_flush_points GUARDED_BY(m_lock);  // wanted, not formed yet
  std::atomic<SequenceNumber> m_newest_flush_point{0};  // changed under the lock
  std::map<SequenceNumber, LogPosition> m_flush_point_positions GUARDED_BY(m_lock);
  LogPosition m_formed GUARDED_BY(m_lock);  // after the newest record
};

}  // namespace vtkv
