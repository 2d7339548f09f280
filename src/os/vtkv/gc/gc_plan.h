// SPDX-License-Identifier: LGPL-2.1-or-later
// How the collector of the value log empties segments, and how many of them at once: what costs least, in bytes of the
// log that are read in the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "vtkv/gc/candidate_choice.h"
#include "vtkv/options.h"

namespace vtkv {

struct GcPlan {
  enum class Way {
    whole,           // it is read, and each value looked up; one segment
    index_filtered,  // the tree is gone through; then they are read, and what it points to is looked up
    sparse,          // the tree is gone through; what it points to is looked up, and of that what lives is read
  };
  Way way = Way::whole;
  std::vector<SegmentValues> candidates;  // the first ones of the choice
};

// `choice`: segments that may be emptied, best first, not empty. `log_bytes`: of all that are in use. `tree_entries`:
// what a scan of the tree passes. `one`: no more than the first.
GcPlan plan_gc(const Options& options, uint64_t log_bytes, uint64_t tree_entries,
               const std::vector<SealedSegment>& choice, bool one);

}  // namespace vtkv
