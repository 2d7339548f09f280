// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/older_runs.h"

#include <algorithm>

namespace vtkv {

namespace {
constexpr uint64_t kReadBytes = 2 * kUnitBytes;  // an index and a block, about
}  // namespace

bool OlderRuns::may_hold(std::string_view key) const {
  return std::any_of(m_runs.begin(), m_runs.end(), [&](const SortedRun& run) {
    const auto* const part = run.find(key);
    return part && (*part)->may_hold(key);
  });
}

bool OlderRuns::may_hold_any(const Run& part, std::string_view begin, std::string_view end) const {
  if (!part.entries_reach_into(begin, end)) {
    return false;
  }
  if (m_range_reads_left == 0 || !m_paced.go_on(kReadBytes)) {
    return true;
  }
  --m_range_reads_left;
  bool holds = false;
  // A part that cannot be read may hold anything.
  return !part.holds_any(begin, end, &holds).ok() || holds;
}

bool OlderRuns::may_hold_any(std::string_view begin, std::string_view end) const {
  return std::any_of(m_runs.begin(), m_runs.end(), [&](const SortedRun& run) {
    for (size_t i = run.first_behind(begin); i < run.parts.size() && run.parts[i]->begin_key() < end; ++i) {
      if (may_hold_any(*run.parts[i], begin, end)) {
        return true;
      }
    }
    return false;
  });
}

}  // namespace vtkv
