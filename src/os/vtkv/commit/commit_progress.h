// SPDX-License-Identifier: LGPL-2.1-or-later
// How far the history has come: up to which sequence it was enqueued, is in the log's files, is durable; and the reuse
// horizon, up to which what was freed may be overwritten. None of them ever moves back.
//
//   horizon <= durable <= logged <= enqueued
//
// Thread-safe, without a lock: readers see each of them move alone. Writers: enqueued() is called under the database's
// write lock, advance_durable() and advance_logged() by the commit worker, raise_horizon() by it and by the flush
// worker. Nothing here waits.
#pragma once

#include <atomic>

#include "vtkv/db.h"

namespace vtkv {

class CommitProgress {
 public:
  // After a recovery that ended at `start`.
  CommitProgress(SequenceNumber start, SequenceNumber horizon)
      : m_enqueued(start), m_logged(start), m_durable(start), m_horizon(horizon) {}

  // Everything up to `last` is in the commit queue.
  void enqueued(SequenceNumber last);
  SequenceNumber logged() const { return m_logged.load(); }
  // A record up to `to`, and all before it, are in the log's files.
  void advance_logged(SequenceNumber to);
  SequenceNumber durable() const { return m_durable.load(); }
  void advance_durable(SequenceNumber to);
  SequenceNumber reuse_horizon() const;
  // To the durable_seq of a record that is durable, or to a durable checkpoint's sequence. False: it was there already.
  bool raise_horizon(SequenceNumber horizon);

 private:
  std::atomic<SequenceNumber> m_enqueued;
  std::atomic<SequenceNumber> m_logged;
  std::atomic<SequenceNumber> m_durable;
  std::atomic<SequenceNumber> m_horizon;
};

}  // namespace vtkv
