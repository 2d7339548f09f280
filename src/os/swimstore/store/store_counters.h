// Indices of the store's performance counters. ops/perf_counters.cc describes them.
#pragma once

enum {
  l_swimstore_first = 735000,
  l_swimstore_transactions,
  l_swimstore_commit_latency,   // queue_transactions to durable
  l_swimstore_submit_latency,   // spent in queue_transactions
  l_swimstore_read_latency,
  l_swimstore_write_bytes,      // as the caller gave them
  l_swimstore_slot_bytes,       // written to slots
  l_swimstore_read_bytes,       // as the caller got them
  l_swimstore_read_device_bytes,
  l_swimstore_read_merge_blocks,  // blocks read to be merged with an unaligned write
  l_swimstore_onode_hits,
  l_swimstore_onode_misses,
  l_swimstore_data_hits,        // blocks found in the data cache
  l_swimstore_data_misses,
  l_swimstore_checksum_errors,
  l_swimstore_read_errors,
  l_swimstore_read_retries,
  l_swimstore_last_of_store,
  // ops/perf_counters.h goes on from here.
};
