// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/metrics.h"

namespace vtkv {

std::vector<Metric> metrics_of(const DBStatistics& s) {
#define METRIC(field) {#field, s.field}
  return {
      METRIC(last_sequence),
      METRIC(durable_sequence),
      METRIC(commit_groups),
      METRIC(log_bytes),
      METRIC(external_bytes),
      METRIC(syncs),
      METRIC(memtable_flushes),
      METRIC(flush_bytes),
      METRIC(compactions),
      METRIC(compaction_bytes),
      METRIC(stitched_bytes),
      METRIC(compaction_debt_bytes),
      METRIC(throttled_groups),
      METRIC(throttled_us),
      METRIC(write_waits),
      METRIC(write_waited_us),
      METRIC(gc_lookups),
      METRIC(gc_moved_bytes),
      METRIC(gc_freed_segments),
      METRIC(scan_moved_bytes),
      METRIC(log_live_bytes),
      METRIC(index_bytes),
      METRIC(zones),
      METRIC(zones_in_use),
      METRIC(defragmented_bytes),
      METRIC(background_failures),
      METRIC(background_failing),
      METRIC(log_file_bytes),
      METRIC(tree_file_bytes),
      METRIC(tree_live_bytes),
      METRIC(tree_entries),
      METRIC(filter_bytes),
      METRIC(range_tombstone_bytes),
      METRIC(primed_bytes),
      METRIC(memtable_bytes),
      METRIC(block_cache_bytes),
      METRIC(block_cache_hits),
      METRIC(block_cache_misses),
      METRIC(value_cache_hits),
      METRIC(value_cache_misses),
      METRIC(runs),
      METRIC(levels),
      METRIC(log_segments),
      METRIC(unprimed_log_segments),
      METRIC(purges),
      METRIC(filter_read_bytes),
  };
#undef METRIC
}

}  // namespace vtkv
