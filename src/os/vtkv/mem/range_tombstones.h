// SPDX-License-Identifier: LGPL-2.1-or-later
// Range tombstones of one source (a memtable or a run).
//
// A tombstone at sequence s hides the entries of its range with a sequence below s.
//
// Structure: a forest of immutable nodes, each over tombstones that came one after the other. A node holds
// fragments, which do not overlap: of each key the newest of the node's tombstones that covers it. So n
// tombstones of ranges that grow over one another are one fragment, not n^2. The newest tombstones, less than a leaf's
// worth, are in the leaf, which every tombstone replaces; a full leaf becomes a tree, and two trees of equal size
// become one, as a binary counter counts. A lookup searches the fragments of O(log n) nodes; a reader of the past
// that meets a fragment too new for it goes down into the node's halves, O(log n) more.
//
// Those of a run are all there at once: one tree, of few levels and large leaves, for a run may have millions, and who
// reads the past of what is on disk is rare.
//
// Cost: adding O(log n) amortized; covering() O(log^2 n) comparisons, for every reader, and in a run as many as a leaf
// has for one of the past. Memory: two keys, and 40 bytes per tombstone, and per fragment on each level that has one:
// of a memtable log2(n / 32), of a run log32(n / 256).
//
// Threads: many readers, one writer. A reader takes a lock to copy two pointers; the writer holds it
// to set them, never while it builds.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/mem/arena.h"
#include "vtkv/util/mutex.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// Every key in [begin, end) is removed at that sequence.
struct RangeTombstone {
  std::string_view begin;
  std::string_view end;
  SequenceNumber sequence = 0;
};

class RangeTombstones {
 public:
  using Visit =
      std::function<void(std::string_view begin, std::string_view end, const std::vector<SequenceNumber>& sequences)>;

  RangeTombstones();
  // A run's. In any order; copies the keys.
  explicit RangeTombstones(std::vector<RangeTombstone> tombstones);
  RangeTombstones(const RangeTombstones&) = delete;
  RangeTombstones& operator=(const RangeTombstones&) = delete;

  // REQUIRES: no sequence is below the one before. Nothing when begin >= end.
  void add(SequenceNumber sequence, std::string_view begin, std::string_view end);
  // The greatest sequence <= at_most of a tombstone that covers key; 0 when none does.
  SequenceNumber covering(std::string_view key, SequenceNumber at_most) const;
  // When a tombstone in (newer_than, at_most] covers key: an end > key such that every key in [key, end)
  // is covered by such a tombstone; lets an iterator jump. Empty when key is not covered.
  std::string covered_until(std::string_view key, SequenceNumber at_most, SequenceNumber newer_than) const;
  // The counterpart for backward iteration: a begin <= key such that every key in [begin, key] is covered.
  std::optional<std::string> covered_from(std::string_view key, SequenceNumber at_most,
                                          SequenceNumber newer_than) const;
  // Does any tombstone reach into [begin, end)? An empty end is no limit.
  bool overlaps(std::string_view begin, std::string_view end) const;
  // Is there a tombstone newer than `newer_than` that covers any key in [first, last]?
  bool hides_any(std::string_view first, std::string_view last, SequenceNumber newer_than) const;
  bool empty() const { return m_count.load(std::memory_order_acquire) == 0; }
  size_t count() const { return m_count.load(std::memory_order_acquire); }
  size_t memory_bytes() const { return m_memory_bytes.load(std::memory_order_relaxed); }
  // How much memory_bytes() grows at most when so many more are added, but for their keys.
  size_t growth_most(size_t tombstones) const;

  // Every tombstone as it was added, the oldest first.
  void for_each(const std::function<void(const RangeTombstone&)>& visit) const;
  // Those that reach into [begin, end), cut to it; without an end, to all from `begin` on. The keys are those of this
  // object or of the bounds, which both outlive the result.
  std::vector<RangeTombstone> within(std::string_view begin, std::optional<std::string_view> end) const;
  // Visits fragments in key order. Of the tombstones that cover one, the newest of each stripe that the
  // snapshots (ascending) cut the sequences into, descending; see compaction/compaction_iterator.h.
  void for_each_newest(const std::vector<SequenceNumber>& snapshots, const Visit& visit) const;

 private:
  using Fragments = std::vector<RangeTombstone>;  // ascending, without overlaps
  struct Node;
  struct View;
  using NodePointer = std::shared_ptr<const Node>;
  using Forest = std::vector<NodePointer>;  // the newest first
  static constexpr size_t kLeafTombstones = 32;
  // Of what is built at once.
  static constexpr size_t kBuiltLeafTombstones = 256;
  static constexpr size_t kBuiltParts = 32;

  static Fragments paint(const Fragments& below, const Fragments& above);
  static Fragments paint(const Fragments& below, const RangeTombstone& over);
  static const RangeTombstone* find(const Fragments& fragments, std::string_view key, bool before);
  static std::optional<RangeTombstone> newest(const Node& node, std::string_view key, bool before,
                                              SequenceNumber at_most);
  static std::optional<RangeTombstone> newest(const View& view, std::string_view key, bool before,
                                              SequenceNumber at_most);
  static void visit_tombstones(const Node& node, const std::function<void(const RangeTombstone&)>& visit);
  static void paint_between(const Node& node, SequenceNumber newer_than, SequenceNumber at_most, Fragments* painted);
  static size_t bytes_of(const Node& node);
  static Fragments paint_all(const RangeTombstone* first, size_t count);
  static Fragments paint_all(const std::vector<NodePointer>& parts, size_t first, size_t count);
  // Of tombstones in the arena, the oldest first. *bytes grows by what is new.
  static NodePointer build(const RangeTombstone* first, size_t count, size_t* bytes);
  NodePointer grow_leaf(const Node* old, const RangeTombstone& tombstone);
  static Forest grow_trees(Forest trees, NodePointer leaf, size_t* bytes);
  View view() const;
  std::string_view keep(std::string_view key);

  // The writer's.
  Arena m_arena;  // keys, and the tombstones of leaves
  RangeTombstone* m_leaf_tombstones = nullptr;  // of the leaf
  SequenceNumber m_last_sequence = 0;
  size_t m_node_bytes = 0;
  std::atomic<size_t> m_count{0};
  std::atomic<size_t> m_memory_bytes{0};
  mutable Mutex m_lock;
  NodePointer m_leaf GUARDED_BY(m_lock);
  std::shared_ptr<const Forest> m_trees GUARDED_BY(m_lock);
};

}  // namespace vtkv
