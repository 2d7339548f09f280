// SPDX-License-Identifier: LGPL-2.1-or-later
// Names of the store's performance counters (`ceph daemon osd.N perf dump`, section "swimstore").
//
// Latencies are averages over time; those at the end are copied from the cube and the caches by refresh_gauges(), every
// few seconds. Managers and exporters see those of priority "useful" and above.
#pragma once

#include <memory>

#include "common/perf_counters.h"
#include "include/common_fwd.h"

#include "swimstore/container/container_set.h"
#include "vtkv/db.h"

namespace swimstore {

enum {
  l_swimstore_first = 735100,
  // Transactions
  l_swimstore_transactions,  // queue_transactions calls
  l_swimstore_operations,  // operations in them
  l_swimstore_queue_latency,  // queue_transactions, begin to end
  l_swimstore_throttle_latency,  // of it: waits for room in swimstore_throttle_bytes; counted when there was one
  l_swimstore_space_latency,  // of it: waits for free space; counted when there was one
  l_swimstore_space_throttle_latency,  // of it: slowed because little space is left; counted when it was
  l_swimstore_plan_latency,  // of it: operations applied to onodes, slots chosen
  l_swimstore_submit_latency,  // of it: encoding and Cube::submit
  l_swimstore_commit_latency,  // submitted to durable
  l_swimstore_commit_latency_histogram,  // the same, by the bytes that the transaction holds
  l_swimstore_encoded_bytes,  // batch bytes
  // Data writes
  l_swimstore_write_bytes,  // as asked for by the caller
  l_swimstore_write_slot_bytes,  // as written to slots
  l_swimstore_write_slots,  // slot writes
  l_swimstore_write_split,  // writes cut into several slots
  l_swimstore_compress_latency,  // of each attempt
  l_swimstore_incompressible,  // pieces of data that compression saved too little of
  l_swimstore_decompress_latency,
  l_swimstore_write_merge_reads,  // blocks read to complete an unaligned write
  l_swimstore_write_unprimed,  // slot writes that need a sync of their own
  l_swimstore_relaxed_transactions,  // acknowledged before they were durable
  // Data reads
  l_swimstore_read_latency,
  l_swimstore_read_bytes,  // handed to the caller
  l_swimstore_read_slot_bytes,  // read from slots
  l_swimstore_read_cache_hit_bytes,
  l_swimstore_read_cache_miss_bytes,
  l_swimstore_read_checksum_errors,  // slices of slots, also of those that were right when read again
  l_swimstore_read_retries,  // reads from slots that were tried again
  l_swimstore_read_errors,  // -EIO given to the caller, or a block that a write could not be merged with
  // Metadata reads
  l_swimstore_omap_latency,  // get, get_keys, get_values, check_keys
  l_swimstore_omap_seek_latency,
  l_swimstore_omap_next_latency,
  l_swimstore_list_latency,  // collection_list
  l_swimstore_slow_operations,  // that took swimstore_log_op_age or longer
  // Gauges, and counts that others keep
  l_swimstore_onode_hits,
  l_swimstore_onode_misses,
  l_swimstore_throttle_bytes,  // of transactions that are under way
  l_swimstore_onodes,
  l_swimstore_onode_cache_bytes,
  l_swimstore_data_cache_bytes,
  l_swimstore_block_cache_bytes,
  l_swimstore_block_cache_hits,
  l_swimstore_block_cache_misses,
  l_swimstore_commit_groups,
  l_swimstore_syncs,
  l_swimstore_log_bytes,
  l_swimstore_external_bytes,
  l_swimstore_memtable_bytes,
  l_swimstore_memtable_flushes,
  l_swimstore_flush_bytes,
  l_swimstore_compactions,
  l_swimstore_compaction_bytes,
  l_swimstore_runs,
  l_swimstore_log_file_bytes,
  l_swimstore_tree_file_bytes,
  l_swimstore_slot_owned_bytes,
  l_swimstore_slot_free_bytes,
  l_swimstore_container_file_bytes,
  l_swimstore_primed_bytes,
  l_swimstore_punched_bytes,
  l_swimstore_last
};

struct MemoryGauges {
  uint64_t onodes = 0;
  uint64_t onode_bytes = 0;
  uint64_t onode_hits = 0;
  uint64_t onode_misses = 0;
  uint64_t data_bytes = 0;
  uint64_t throttle_bytes = 0;
};

// Registered with the context's collection until destroyed.
class StoreCounters {
 public:
  explicit StoreCounters(CephContext* cct);
  ~StoreCounters();
  StoreCounters(const StoreCounters&) = delete;
  StoreCounters& operator=(const StoreCounters&) = delete;

  PerfCounters* get() const { return m_counters; }
  void refresh_gauges(const vtkv::DBStatistics& db, const ContainerStatistics& slots, const MemoryGauges& memory);

 private:
  CephContext* m_cct;
  PerfCounters* m_counters;
};

}  // namespace swimstore
