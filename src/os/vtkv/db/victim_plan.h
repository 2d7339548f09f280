// How the collector of the value log empties segments, and how many of them at once: what costs least, in bytes of the
// log that are read in the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "vtkv/options.h"
#include "vtkv/tree/value_account.h"
#include "vtkv/vlog/segment_pool.h"

namespace vtkv {

struct VictimPlan {
  enum class Way {
    whole,  // it is read, and each value looked up; one segment
    sieve,  // the tree is gone through; then they are read, and what it points to is looked up
    pick,   // the tree is gone through; what it points to is looked up, and of that what lives is read
  };
  Way way = Way::whole;
  std::vector<SegmentValues> victims;  // the first ones of the choice
};

// `choice`: segments of the pool that may be emptied, best first, not empty. `tree_entries`: what a scan of the tree
// passes. `one`: no more than the first.
VictimPlan plan_victims(const Options& options, const SegmentPool& pool, uint64_t tree_entries,
                        const std::vector<SegmentValues>& choice, bool one);

}  // namespace vtkv
