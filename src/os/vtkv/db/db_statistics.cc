// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <iterator>

#include "vtkv/db.h"

namespace vtkv {

DBStatistics& DBStatistics::operator+=(const DBStatistics& other) {
  last_sequence = std::max(last_sequence, other.last_sequence);
  durable_sequence = std::max(durable_sequence, other.durable_sequence);
  levels = std::max(levels, other.levels);
  static constexpr uint64_t DBStatistics::* kSums[] = {
      &DBStatistics::commit_groups,
      &DBStatistics::log_bytes,
      &DBStatistics::external_bytes,
      &DBStatistics::syncs,
      &DBStatistics::memtable_flushes,
      &DBStatistics::flush_bytes,
      &DBStatistics::compactions,
      &DBStatistics::compaction_bytes,
      &DBStatistics::filter_read_bytes,
      &DBStatistics::stitched_bytes,
      &DBStatistics::purges,
      &DBStatistics::write_waits,
      &DBStatistics::write_waited_us,
      &DBStatistics::gc_lookups,
      &DBStatistics::gc_moved_bytes,
      &DBStatistics::gc_freed_segments,
      &DBStatistics::scan_moved_bytes,
      &DBStatistics::log_live_bytes,
      &DBStatistics::log_file_bytes,
      &DBStatistics::tree_file_bytes,
      &DBStatistics::tree_live_bytes,
      &DBStatistics::tree_entries,
      &DBStatistics::filter_bytes,
      &DBStatistics::range_tombstone_bytes,
      &DBStatistics::primed_bytes,
      &DBStatistics::memtable_bytes,
      &DBStatistics::block_cache_bytes,
      &DBStatistics::block_cache_hits,
      &DBStatistics::block_cache_misses,
      &DBStatistics::value_cache_hits,
      &DBStatistics::value_cache_misses,
      &DBStatistics::index_bytes,
      &DBStatistics::compaction_debt_bytes,
      &DBStatistics::throttled_groups,
      &DBStatistics::throttled_us,
      &DBStatistics::zones,
      &DBStatistics::zones_in_use,
      &DBStatistics::defragmented_bytes,
      &DBStatistics::background_failures,
      &DBStatistics::background_failing,
  };
  static_assert(sizeof(DBStatistics) == (2 + std::size(kSums)) * sizeof(uint64_t) + 4 * sizeof(uint32_t),
                "a member is left out");
  for (const auto member : kSums) {
    this->*member += other.*member;
  }
  for (const auto member : {&DBStatistics::runs, &DBStatistics::log_segments, &DBStatistics::unprimed_log_segments}) {
    this->*member += other.*member;
  }
  return *this;
}

}  // namespace vtkv
