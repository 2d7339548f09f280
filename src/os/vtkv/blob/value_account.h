// SPDX-License-Identifier: LGPL-2.1-or-later
// How much of each log segment the tree points to.
//
// Counts the pointer entries that physically lie in the runs, whether a reader could reach them or not: a
// flush creates some, a compaction drops some. It is an upper bound of what is live: a value that was overwritten
// counts until a compaction meets both versions, and one whose span was dropped unread counts until its segment is
// collected. How much of it is hidden by newer versions is estimated beside it (overwrite_sample.h). So the account
// chooses what to collect; what may be recycled is decided by looking at each value.
//
// A value counts with its key, as the put that the log holds: that is what relocating it writes again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/mem/value_pointer.h"
#include "vtkv/write_batch.h"

namespace vtkv {

struct SegmentValues {
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;  // of the values and their keys, as the log has them
  uint64_t end = 0;    // where the last value that ever was pointed to ends
  // Of `bytes`, about: overwritten or deleted. Not in the manifest; begins with 0 at an open.
  uint64_t hidden_bytes = 0;

  uint64_t live_bytes() const { return bytes - std::min(bytes, hidden_bytes); }  // about
};

// What one flush or compaction changes. Not thread-safe.
class ValueDelta final : public EntryObserver {
 public:
  void created(std::string_view key, const ValuePointer& pointer) { add(key, pointer, 1); }
  void dropped(const Entry& entry) override;
  // So many values like this one are not the newest any more.
  void hidden(std::string_view key, const ValuePointer& pointer, uint64_t times) {
    m_changes[pointer.epoch].hidden_bytes += static_cast<int64_t>(times * bytes_of(key, pointer));
  }
  uint64_t hidden_bytes() const;  // so much was said to be, in all
  // Segments that appear are added, at the end; those that nothing points to any more stay, with zeros.
  void apply(std::vector<SegmentValues>* segments) const;

 private:
  struct Change {
    uint64_t segment_id = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
    uint64_t end = 0;
    int64_t hidden_bytes = 0;
  };
  static uint64_t bytes_of(std::string_view key, const ValuePointer& pointer) {
    return WriteBatch::put_bytes(key.size(), pointer.length);
  }
  void add(std::string_view key, const ValuePointer& pointer, int64_t sign);

  std::map<uint64_t, Change> m_changes;  // by epoch: every use of a segment has its own
};

}  // namespace vtkv
