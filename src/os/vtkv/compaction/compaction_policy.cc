// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_policy.h"

#include <algorithm>

namespace vtkv {

namespace {

using Runs = std::vector<std::shared_ptr<const Run>>;

constexpr size_t kEmergencyRuns = 16;
// Going through so much costs about what the checkpoint of a compaction does: more runs share one.
constexpr uint64_t kEmergencyFewBytes = 1 << 20;

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

// What the manifest lists of it, too: a run of range tombstones has no entries.
uint64_t cost_of(const Run& run) { return run.entry_bytes() + run.location().span.bytes(); }

bool any_busy(const Runs& runs, size_t first, size_t end, const std::set<uint64_t>& busy) {
  return std::any_of(runs.begin() + first, runs.begin() + end,
                     [&](const auto& run) { return busy.contains(run->location().run_id); });
}

// Whether one run of that many bytes, of runs of `level`, stays in it.
bool fits_level(uint64_t bytes, uint32_t level, const CompactionShape& shape) {
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

CompactionChoice choose_compaction(const Runs& runs, const CompactionShape& shape, const std::set<uint64_t>& busy,
                                   uint32_t levels_end) {
  const size_t runs_min = std::max<uint32_t>(2, shape.runs_per_level);
  for (size_t first = 0; first < runs.size() && level_of(runs, first) < levels_end; first = level_end(runs, first)) {
    size_t end = level_end(runs, first);
    if (any_busy(runs, first, end, busy)) {
      // What came after the compaction under way had begun lies in front of its runs.
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

CompactionChoice choose_emergency_compaction(const Runs& runs, const std::set<uint64_t>& busy) {
  CompactionChoice best;
  double best_cost = 0;
  for (size_t first = 0; first < runs.size(); ++first) {
    uint64_t bytes = 0;
    for (size_t count = 1; count <= kEmergencyRuns && first + count <= runs.size(); ++count) {
      const size_t last = first + count - 1;
      bytes += cost_of(*runs[last]);
      if (any_busy(runs, last, last + 1, busy) || (count > 2 && bytes > kEmergencyFewBytes)) {
        break;
      }
      const double cost = static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(2, count) - 1);
      if (count >= 2 && (best.count == 0 || cost < best_cost || (cost == best_cost && count > best.count))) {
        best = {first, count, level_of(runs, last)};
        best_cost = cost;
      }
    }
  }
  return best;
}

uint64_t compaction_debt(const Runs& runs, const CompactionShape& shape) {
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
