// Which runs to merge next: size-tiered. A level with growth_factor runs becomes one run of the next
// level; the runs of the next level join in when they are no bigger together than what comes down, so that
// the newest level does not keep a copy of a small old one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vtkv/tree/run.h"

namespace vtkv {

struct MergeChoice {
  size_t first = 0;  // among the runs, newest first
  size_t count = 0;  // 0: nothing is worth merging
  uint32_t level = 0;  // of the result
};

MergeChoice choose_merge(const std::vector<std::shared_ptr<const Run>>& runs, uint32_t growth_factor);

}  // namespace vtkv
