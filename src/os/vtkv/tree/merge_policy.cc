#include "vtkv/tree/merge_policy.h"

#include <algorithm>

namespace vtkv {

MergeChoice choose_merge(const std::vector<std::shared_ptr<const Run>>& runs, uint32_t growth_factor) {
  const size_t runs_min = std::max<uint32_t>(2, growth_factor);
  const auto level_end = [&](size_t first) {
    size_t end = first;
    while (end < runs.size() && runs[end]->location().level == runs[first]->location().level) {
      ++end;
    }
    return end;
  };
  for (size_t first = 0; first < runs.size(); first = level_end(first)) {
    size_t end = level_end(first);
    if (end - first < runs_min) {
      continue;
    }
    uint32_t level = runs[first]->location().level + 1;
    uint64_t bytes = 0;
    for (size_t i = first; i < end; ++i) {
      bytes += runs[i]->descriptor().bytes();
    }
    while (end < runs.size()) {
      const size_t next_end = level_end(end);
      uint64_t next_bytes = 0;
      for (size_t i = end; i < next_end; ++i) {
        next_bytes += runs[i]->descriptor().bytes();
      }
      if (next_bytes > bytes) {
        break;
      }
      level = std::max(level, runs[end]->location().level);
      bytes += next_bytes;
      end = next_end;
    }
    return {first, end - first, level};
  }
  return {};
}

}  // namespace vtkv
