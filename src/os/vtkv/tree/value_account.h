// How much of each log segment the tree points to.
//
// Counts the pointer entries that physically lie in the runs, whether a reader could reach them or not: a
// flush creates some, a merge drops some. It is an upper bound of what is live: a value that was overwritten
// counts until a merge meets both versions, and one whose span was dropped unread counts until its segment is
// collected. So the account chooses what to collect; what may be recycled is decided by looking at each value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vtkv/mem/value_pointer.h"
#include "vtkv/tree/reducer.h"

namespace vtkv {

struct SegmentValues {
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;  // of the values
  uint64_t end = 0;    // where the last value that ever was pointed to ends
};

// What one flush or merge changes. Not thread-safe.
class ValueDelta final : public EntryObserver {
 public:
  void created(const ValuePointer& pointer) { add(pointer, 1); }
  void dropped(const Entry& entry) override;
  // Segments that appear are added, at the end; those that nothing points to any more stay, with zeros.
  void apply(std::vector<SegmentValues>* segments) const;

 private:
  struct Change {
    uint64_t segment_id = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
    uint64_t end = 0;
  };
  void add(const ValuePointer& pointer, int64_t sign);

  std::map<uint64_t, Change> m_changes;  // by epoch: every use of a segment has its own
};

}  // namespace vtkv
