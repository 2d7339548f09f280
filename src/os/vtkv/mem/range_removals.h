// Range removals of one source (a memtable or a run), cut into fragments that do not overlap, so that a
// lookup is one search among the fragments.
//
// A removal at sequence s hides the entries of its range with a sequence below s.
//
// Threads: many readers, one writer (internal shared lock; readers of an empty set take none).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/write_batch.h"

namespace vtkv {

class RangeRemovals {
 public:
  // Sequences may come in any order; the same range may be added again. Nothing when begin >= end.
  void add(SequenceNumber sequence, std::string_view begin, std::string_view end);
  // The greatest sequence <= at_most of a removal that covers key; 0 when none does.
  SequenceNumber covering(std::string_view key, SequenceNumber at_most) const;
  // When a removal in (newer_than, at_most] covers key: an end > key such that every key in [key, end)
  // is covered by such a removal; lets an iterator jump. Empty when key is not covered.
  std::string covered_until(std::string_view key, SequenceNumber at_most, SequenceNumber newer_than) const;
  // The counterpart for backward iteration: a begin <= key such that every key in [begin, key] is covered.
  std::optional<std::string> covered_from(std::string_view key, SequenceNumber at_most,
                                          SequenceNumber newer_than) const;
  // Does any fragment reach into [begin, end)? An empty end is no limit.
  bool overlaps(std::string_view begin, std::string_view end) const;
  bool empty() const { return m_fragment_count.load(std::memory_order_acquire) == 0; }
  size_t fragments() const { return m_fragment_count.load(std::memory_order_acquire); }
  size_t memory_bytes() const { return m_memory_bytes.load(std::memory_order_relaxed); }
  // Visits fragments in key order; sequences are in descending order.
  void for_each(const std::function<void(std::string_view begin, std::string_view end,
                                         const std::vector<SequenceNumber>& sequences)>& visit) const;

 private:
  struct Fragment {
    std::string end;
    std::vector<SequenceNumber> sequences;  // descending
    bool covers(SequenceNumber at_most, SequenceNumber newer_than) const;
    SequenceNumber newest(SequenceNumber at_most) const;  // 0: none
  };
  using Fragments = std::map<std::string, Fragment, std::less<>>;  // by begin

  // The callers hold m_lock.
  Fragments::const_iterator fragment_of(std::string_view key) const;
  void split_at(std::string_view key);
  Fragments::iterator insert(std::string_view begin, std::string_view end, std::vector<SequenceNumber> sequences);

  mutable std::shared_mutex m_lock;
  Fragments m_fragments;
  std::atomic<size_t> m_fragment_count{0};
  std::atomic<size_t> m_memory_bytes{0};
};

}  // namespace vtkv
