// SPDX-License-Identifier: LGPL-2.1-or-later
// The sequences that reads may still name. Thread-safe.
#pragma once

#include <set>
#include <vector>

#include "vtkv/db.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class SnapshotList {
 public:
  // `newest` is read under the list's lock: a flush that lists the snapshots either sees this one, or has
  // closed a memtable that ends at or below it.
  template <typename Newest>
  const Snapshot* take(Newest newest) {
    MutexLock lock(m_lock);
    auto* snapshot = new Entry(newest());
    m_sequences.insert(snapshot->sequence());
    return snapshot;
  }
  void release(const Snapshot* snapshot) {
    MutexLock lock(m_lock);
    const auto found = m_sequences.find(snapshot->sequence());
    VTKV_ASSERT(found != m_sequences.end());
    m_sequences.erase(found);
    delete snapshot;
  }
  // Ascending, each once.
  std::vector<SequenceNumber> sequences() const {
    MutexLock lock(m_lock);
    const std::set<SequenceNumber> distinct(m_sequences.begin(), m_sequences.end());
    return {distinct.begin(), distinct.end()};
  }

 private:
  class Entry final : public Snapshot {
   public:
    explicit Entry(SequenceNumber sequence) : m_sequence(sequence) {}
    SequenceNumber sequence() const override { return m_sequence; }

   private:
    const SequenceNumber m_sequence;
  };

  mutable Mutex m_lock;
  std::multiset<SequenceNumber> m_sequences GUARDED_BY(m_lock);
};

}  // namespace vtkv
