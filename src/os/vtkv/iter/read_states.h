// SPDX-License-Identifier: LGPL-2.1-or-later
// What readers begin with: the memtables and the version of now, the newest sequence that they see, the snapshots, and
// the readers that began before a moment (reader epochs).
//
// A state is never changed: whoever changes something makes a new one. A reader takes it, and then a sequence: a flush
// may drop what only an older sequence could see, and a state taken first still pins it.
//
// Thread-safe; switch_memtable() is called under the database's write lock. The lock is held while a state is made,
// never over I/O, nor where memtables or runs end.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "vtkv/iter/read_state.h"
#include "vtkv/iter/snapshot_list.h"
#include "vtkv/mem/memtable_bound.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

// A memtable that takes no more writes.
struct ClosedMemTable {
  std::shared_ptr<MemTable> memtable;
  SequenceNumber last_sequence = 0;
};

class ReadStates {
 public:
  explicit ReadStates(Tree* tree) : m_tree(tree) {}

  // The first state, before anybody reads. `closed`: the oldest first.
  void begin(std::shared_ptr<MemTable> active, const std::vector<ClosedMemTable>& closed, SequenceNumber visible)
      EXCLUDES(m_lock);
  std::shared_ptr<const ReadState> current() const EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    return m_state;
  }
  // For who will write what he read: the state, and a sequence at or below which everything is in it. The sequence
  // comes before the state, other than for a reader: a put in a memtable that is younger than the state would be
  // neither seen there nor, at or below the sequence, looked for when it is written (WritePath::relocate).
  std::shared_ptr<const ReadState> checked_state(SequenceNumber* checked) const EXCLUDES(m_lock) {
    *checked = visible();
    return current();
  }
  // The newest sequence that a reader sees. Everything at or below it is in the states taken afterwards, and those
  // taken before have what of it was in their memtables then.
  SequenceNumber visible() const { return m_visible.load(std::memory_order_acquire); }
  void set_visible(SequenceNumber sequence) { m_visible.store(sequence, std::memory_order_release); }

  const Snapshot* take_snapshot() {
    return m_snapshots.take([this] { return visible(); });
  }
  void release_snapshot(const Snapshot* snapshot) { m_snapshots.release(snapshot); }
  // Ascending, each once.
  std::vector<SequenceNumber> snapshots() const { return m_snapshots.sequences(); }
  SequenceNumber oldest_snapshot() const;  // UINT64_MAX: there is none
  // Where somebody reads who names this snapshot, or none.
  SequenceNumber read_sequence(const Snapshot* snapshot) const { return snapshot ? snapshot->sequence() : visible(); }

  // `closed`, the newest memtable, ends with `last_sequence`; `fresh` takes what comes.
  void switch_memtable(std::shared_ptr<MemTable> closed, SequenceNumber last_sequence, std::shared_ptr<MemTable> fresh)
      EXCLUDES(m_lock);
  // To be flushed next; without a memtable: none is.
  ClosedMemTable oldest_closed() const EXCLUDES(m_lock);
  size_t closed_count() const { return m_closed_count.load(); }
  // Of those, and of all.
  uint64_t closed_bytes() const { return m_closed_bytes.load(); }
  uint64_t memtable_bytes() const EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    return m_closed_bytes.load() + m_state->memtables.front()->memory_bytes();
  }
  // Takes over the tree's runs; with `flushed`, the oldest closed memtable, drops it: it is among them now.
  void install_version(const MemTable* flushed) EXCLUDES(m_lock);

  // Do the memtables take so much that only a flush may go on? Then one is closed.
  bool memtables_are_crowded(size_t memtable_bytes) const EXCLUDES(m_lock) {
    return closed_count() > 0 && this->memtable_bytes() >= memtables_bytes_crowded(memtable_bytes);
  }

  // Ends the reader epoch: readers that start from now on belong to the next. Returns its number.
  uint64_t start_reader_epoch() EXCLUDES(m_lock);
  // Have the last reader of that reader epoch, and those of the ones before, gone?
  bool reader_epoch_has_ended(uint64_t reader_epoch) EXCLUDES(m_lock);

 private:
  Tree* const m_tree;
  SnapshotList m_snapshots;
  std::atomic<SequenceNumber> m_visible{0};
  mutable Mutex m_lock;
  std::shared_ptr<const ReadState> m_state GUARDED_BY(m_lock);
  std::deque<ClosedMemTable> m_closed GUARDED_BY(m_lock);  // oldest first
  // Both changed under the lock.
  std::atomic<size_t> m_closed_count{0};
  std::atomic<uint64_t> m_closed_bytes{0};
  // Reader epochs that are over but for readers of theirs, by number.
  std::map<uint64_t, std::weak_ptr<const int>> m_reader_epochs GUARDED_BY(m_lock);
  uint64_t m_reader_epoch GUARDED_BY(m_lock) = 0;
};

}  // namespace vtkv
