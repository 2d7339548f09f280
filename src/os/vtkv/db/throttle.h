// SPDX-License-Identifier: LGPL-2.1-or-later
// Slows writers down while what follows their writes is behind: the least time between two commit groups.
//
// It grows with what waits to be flushed, compacted and collected, so that writers slow down long before anything could
// run out. Only the memory of memtables has a bound at which they stop (mem/memtable_bound.h).
//
// Any thread may ask. Never waits: the commit pipeline does (commit/group_interval.h). Where compaction is so far
// behind that this does not suffice, flushes wait for it (db/flusher.h), and writers for the memtables.
#pragma once

#include <chrono>
#include <cstddef>

namespace vtkv {

class Throttle {
 public:
  static constexpr size_t kClosedMemtablesTolerated = 4;  // waiting to be flushed
  static constexpr double kFullnessTolerated = 1.4;  // a burst may outrun the collector, no more
  static constexpr std::chrono::microseconds kDelayPerMemtable{2000};
  static constexpr double kPressureTolerated = 0.75;  // a flush raises it, and the next steps lower it
  static constexpr std::chrono::microseconds kDelayPerPressure{200000};
  static constexpr std::chrono::microseconds kDelayPerFullness{20000};
  static constexpr std::chrono::microseconds kDelayMost{50000};

  // `closed_memtables` wait to be flushed; `pressure`: Tree::compaction_pressure(); `fullness`: ValueGc::pressure().
  static std::chrono::microseconds delay(size_t closed_memtables, double pressure, double fullness);
};

}  // namespace vtkv
