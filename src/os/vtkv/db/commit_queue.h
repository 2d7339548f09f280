// What was submitted and not yet taken by the commit worker, in sequence order: submissions, each somebody's who
// waits, and bulks of batches whose writers do not. And the boundaries at which records have to end.
//
// The newest entry may be an open bulk, which still grows. It is left in the queue for kLinger, so that it is
// written in one piece, unless somebody waits for what is in it.
//
// Thread-safe; the callers of append and enqueue serialize themselves (the database's write lock).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vtkv/db.h"
#include "vtkv/db/bulk.h"
#include "vtkv/vlog/log_position.h"

namespace vtkv {

// One of the two.
struct QueuedWrite {
  Submission* submission = nullptr;
  std::shared_ptr<Bulk> bulk;
};

class CommitQueue {
 public:
  static constexpr std::chrono::microseconds kLinger{5000};

  // `bulk_bytes`: how large a bulk grows.
  explicit CommitQueue(size_t bulk_bytes) : m_bulk_bytes(bulk_bytes) {}

  // Returns how many submissions are there now.
  size_t enqueue(Submission* submission);
  size_t waiting() const { return m_waiting.load(); }
  // Adds to the open bulk, or opens one. *copy is where the batch lies in it. True when the worker has to be
  // woken for it.
  bool append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last, uint64_t now_us,
              std::shared_ptr<Bulk>* bulk, std::string_view* copy);
  // Nothing more goes into the open bulk, and it is not left waiting.
  void close_bulk();

  // Moves what is to be taken now. *wait: until the rest is due; 0: nothing is left.
  void take(uint64_t now_us, std::vector<QueuedWrite>* taken, std::chrono::microseconds* wait);
  bool empty() const;

  // The record that holds `sequence`, the last one submitted, ends with it.
  void request_boundary(SequenceNumber sequence);
  // The first boundary that no record has reached; UINT64_MAX: none.
  SequenceNumber next_boundary() const;
  void record_formed(const LogPosition& position);
  bool boundary_position(SequenceNumber sequence, LogPosition* position) const;
  void forget_boundaries_before(SequenceNumber sequence);

  // Sets where the log ends before the first record.
  void start_after(const LogPosition& position) { m_formed = position; }

 private:
  const size_t m_bulk_bytes;
  mutable std::mutex m_lock;
  std::vector<QueuedWrite> m_writes;
  std::atomic<size_t> m_waiting{0};  // submissions among them; changed under the lock
  bool m_open = false;  // the last of them is a bulk that takes more
  std::deque<SequenceNumber> m_boundaries;  // wanted, not formed yet
  std::map<SequenceNumber, LogPosition> m_boundary_positions;
  LogPosition m_formed;  // after the newest record
};

}  // namespace vtkv
