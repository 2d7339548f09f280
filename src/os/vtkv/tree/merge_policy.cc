#include "vtkv/tree/merge_policy.h"

#include <algorithm>

namespace vtkv {

namespace {

using Runs = std::vector<std::shared_ptr<const Run>>;

constexpr size_t kEmergencyRuns = 16;

uint32_t level_of(const Runs& runs, size_t i) { return runs[i]->location().level; }

size_t level_end(const Runs& runs, size_t first) {
  size_t end = first;
  while (end < runs.size() && level_of(runs, end) == level_of(runs, first)) {
    ++end;
  }
  return end;
}

uint64_t bytes_of(const Runs& runs, size_t first, size_t end) {
  uint64_t bytes = 0;
  for (size_t i = first; i < end; ++i) {
    bytes += runs[i]->entry_bytes();
  }
  return bytes;
}

bool any_busy(const Runs& runs, size_t first, size_t end, const std::set<uint64_t>& busy) {
  return std::any_of(runs.begin() + first, runs.begin() + end,
                     [&](const auto& run) { return busy.contains(run->location().run_id); });
}

// Whether one run of that many bytes, of runs of `level`, stays in it.
bool fits_level(uint64_t bytes, uint32_t level, const MergeShape& shape) {
  if (shape.runs_per_level >= shape.growth_factor) {
    return false;
  }
  uint64_t limit = shape.level_bytes;
  for (uint32_t i = 0; i < level && limit < bytes; ++i) {
    limit *= shape.growth_factor;
  }
  return bytes <= limit;
}

}  // namespace

MergeChoice choose_merge(const Runs& runs, const MergeShape& shape, const std::set<uint64_t>& busy,
                         uint32_t levels_end) {
  const size_t runs_min = std::max<uint32_t>(2, shape.runs_per_level);
  for (size_t first = 0; first < runs.size() && level_of(runs, first) < levels_end; first = level_end(runs, first)) {
    size_t end = level_end(runs, first);
    if (any_busy(runs, first, end, busy)) {
      // What came after the merge under way had begun lies in front of its runs.
      end = first;
      while (!any_busy(runs, end, end + 1, busy)) {
        ++end;
      }
    }
    if (end - first < runs_min) {
      continue;
    }
    uint64_t bytes = bytes_of(runs, first, end);
    uint32_t level = level_of(runs, first) + (fits_level(bytes, level_of(runs, first), shape) ? 0 : 1);
    while (end < runs.size() && level_of(runs, end) < levels_end) {
      const size_t next_end = level_end(runs, end);
      const uint64_t next_bytes = bytes_of(runs, end, next_end);
      if (next_bytes > bytes || any_busy(runs, end, next_end, busy)) {
        break;
      }
      level = std::max(level, level_of(runs, end));
      bytes += next_bytes;
      end = next_end;
    }
    return {first, end - first, level};
  }
  return {};
}

MergeChoice choose_emergency_merge(const Runs& runs, const std::set<uint64_t>& busy) {
  MergeChoice best;
  uint64_t best_bytes = 0;
  const size_t count = std::min(kEmergencyRuns, runs.size());
  for (size_t first = 0; count >= 2 && first + count <= runs.size(); ++first) {
    if (any_busy(runs, first, first + count, busy)) {
      continue;
    }
    const uint64_t bytes = bytes_of(runs, first, first + count);
    if (best.count == 0 || bytes < best_bytes) {
      best = {first, count, level_of(runs, first + count - 1)};
      best_bytes = bytes;
    }
  }
  return best;
}

uint64_t merge_debt(const Runs& runs, const MergeShape& shape) {
  const size_t allowed = std::max<uint32_t>(2, shape.runs_per_level) - 1;
  uint64_t debt = 0;
  for (size_t first = 0; first < runs.size();) {
    const size_t end = level_end(runs, first);
    if (end - first > allowed) {
      debt += bytes_of(runs, first, end);
    }
    first = end;
  }
  return debt;
}

}  // namespace vtkv
