// Range removals of one source (a memtable or a run), cut into fragments that do not overlap, so that a
// lookup is one search among the fragments.
//
// Threads: many readers, one writer (internal shared lock; readers of an empty set take none).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/write_batch.h"

namespace vtkv {

class RangeRemovals {
 public:
  // Sequences may come in any order; the same range may be added again.
  void add(SequenceNumber sequence, std::string_view begin, std::string_view end);
  // The greatest sequence <= at_most of a removal that covers key; 0 when none does.
  SequenceNumber covering(std::string_view key, SequenceNumber at_most) const;
  // Smallest fragment end > key among fragments covering key at or below at_most and newer than
  // `newer_than`; lets an iterator jump over a removed range. Empty when key is not covered.
  std::string covered_until(std::string_view key, SequenceNumber at_most, SequenceNumber newer_than) const;
  // The counterpart for backward iteration: start of the fragment that covers key; empty optional-like
  // pair.first false when key is not covered.
  std::pair<bool, std::string> covered_from(std::string_view key, SequenceNumber at_most,
                                            SequenceNumber newer_than) const;
  bool empty() const { return m_fragment_count.load(std::memory_order_acquire) == 0; }
  size_t fragments() const { return m_fragment_count.load(std::memory_order_acquire); }
  size_t memory_bytes() const;
  // Visits fragments in key order; sequences are in descending order.
  void for_each(const std::function<void(std::string_view begin, std::string_view end,
                                         const std::vector<SequenceNumber>& sequences)>& visit) const;

 private:
  struct Fragment {
    std::string end;
    std::vector<SequenceNumber> sequences;  // descending
  };
  mutable std::shared_mutex m_lock;
  std::map<std::string, Fragment, std::less<>> m_fragments;  // by begin
  std::atomic<size_t> m_fragment_count{0};
};

}  // namespace vtkv
