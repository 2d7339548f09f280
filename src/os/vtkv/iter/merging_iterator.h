// SPDX-License-Identifier: LGPL-2.1-or-later
// The entries of several sources, the newest first, in the one order of mem/entry_order.h.
//
// Same threading and lifetime rules as Iterator.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/entry_order.h"
#include "vtkv/util/source_heap.h"

namespace vtkv {

class MergingIterator final : public EntryIterator {
 public:
  explicit MergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources);
  MergingIterator(const MergingIterator&) = delete;
  MergingIterator& operator=(const MergingIterator&) = delete;

  bool valid() const override { return m_status.ok() && !m_heap.empty(); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view key, SequenceNumber at_most) override;
  // Each source to a key of its own. The caller knows that what a source holds before it is of no interest.
  void seek_each(const std::vector<std::string>& keys);
  // Last entry with a key below `key`.
  void seek_before(std::string_view key);
  void next() override;
  void previous() override;
  const Entry& entry() const override { return m_sources[m_heap.front()]->entry(); }
  Status status() const override { return m_status; }
  // Ends it, until the next seek.
  void fail(Status status) { m_status = std::move(status); }

  // Moves every source older than `source` that stands before `key` (forward) to it. The caller knows that
  // they hold nothing of interest in between. REQUIRES: the last move was forward.
  void skip_older(size_t source, std::string_view key);
  // The counterpart backward: to the last entry with a key below `key`.
  void skip_older_backward(size_t source, std::string_view key);

 private:
  // In the direction of travel.
  struct InTurn {
    const MergingIterator* merging;
    bool operator()(size_t a, size_t b) const;
  };

  EntryPosition position_of(size_t source) const {
    const Entry& entry = m_sources[source]->entry();
    return {entry.key, entry.sequence, source};
  }
  void rebuild();
  void front_moved();
  void check(const EntryIterator& source);
  static void move_before(EntryIterator& source, std::string_view key);
  void move_behind(size_t other, const EntryPosition& position);

  std::vector<std::unique_ptr<EntryIterator>> m_sources;
  SourceHeap<InTurn> m_heap;  // of valid sources
  bool m_forward = true;
  Status m_status;
};

}  // namespace vtkv
