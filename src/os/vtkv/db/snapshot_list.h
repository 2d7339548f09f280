// The sequences that reads may still name. Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "vtkv/db.h"

namespace vtkv {

class SnapshotList {
 public:
  // `newest` is read under the list's lock: a flush that lists the snapshots either sees this one, or has
  // closed a memtable that ends at or below it.
  template <typename Newest>
  const Snapshot* take(Newest newest) {
    std::lock_guard lock(m_lock);
    auto* snapshot = new Entry(newest());
    m_sequences.insert(snapshot->sequence());
    return snapshot;
  }
  void release(const Snapshot* snapshot) {
    std::lock_guard lock(m_lock);
    m_sequences.erase(m_sequences.find(snapshot->sequence()));
    delete snapshot;
  }
  // Ascending, each once.
  std::vector<SequenceNumber> sequences() const {
    std::lock_guard lock(m_lock);
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

  mutable std::mutex m_lock;
  std::multiset<SequenceNumber> m_sequences;
};

}  // namespace vtkv
