// SPDX-License-Identifier: LGPL-2.1-or-later
// The one order in which everything that merges sources takes their entries: key ascending, of one key the newest
// version first, and of one version that of the newest source. Sources are numbered, the newest 0.
//
// The last rule decides something: a memtable that is closed twice at one sequence has its participant's entries
// twice, and what was collected last counts (CheckpointParticipant::collect).
#pragma once

#include <cstddef>
#include <string_view>

#include "vtkv/util/mutations.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// Where an entry, or a source that stands before one, stands in that order.
struct EntryPosition {
  std::string_view key;
  SequenceNumber sequence = 0;
  size_t source = 0;
};

inline bool comes_before(const EntryPosition& a, const EntryPosition& b) {
  if (const int order = a.key.compare(b.key); order != 0) {
    return order < 0;
  }
  return a.sequence != b.sequence ? a.sequence > b.sequence
                                  : a.source < b.source && !mutated(Mutation::tie_by_source_dropped);
}

}  // namespace vtkv
