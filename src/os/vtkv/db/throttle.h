// SPDX-License-Identifier: LGPL-2.1-or-later
// Slows writers down while what follows their writes is behind: the least time between two commit groups.
//
// It grows with what waits to be flushed, compacted and collected, so that writers slow down long before anything could
// run out. Only the memory of memtables has a bound at which they stop (mem/memtable_bound.h).
//
// Not changed once made: any thread may ask. Never waits: the commit pipeline does (commit/group_interval.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "vtkv/options.h"

namespace vtkv {

class Throttle {
 public:
  static constexpr size_t kClosedMemtablesTolerated = 4;  // waiting to be flushed
  static constexpr uint64_t kLevelsOfDebtTolerated = 8;  // levels' worth of small runs waiting to be compacted
  static constexpr double kFullnessTolerated = 1.4;  // a burst may outrun the collector, no more
  static constexpr std::chrono::microseconds kDelayPerMemtable{2000};
  static constexpr std::chrono::microseconds kDelayPerFullness{20000};
  static constexpr std::chrono::microseconds kDelayMost{50000};

  explicit Throttle(const Options& options)
      : m_debt_tolerated(kLevelsOfDebtTolerated * options.runs_per_level * uint64_t{options.memtable_bytes}) {}

  // `closed_memtables` wait to be flushed; `debt_bytes`: Tree::compaction_debt(); `fullness`: ValueGc::pressure().
  std::chrono::microseconds delay(size_t closed_memtables, uint64_t debt_bytes, double fullness) const;

 private:
  const uint64_t m_debt_tolerated;
};

}  // namespace vtkv
