// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/perf_counters.h"

#include "common/ceph_context.h"
#include "common/perf_counters_collection.h"

namespace swimstore {

namespace {

constexpr int kUseful = PerfCountersBuilder::PRIO_USEFUL;
constexpr int kCritical = PerfCountersBuilder::PRIO_CRITICAL;

// Of what is told apart below: what the dashboard shows (src/os/swimstore/monitoring) has a short name.
constexpr int priority(const char* nick) { return nick == nullptr ? 0 : kUseful; }

void add_transactions(PerfCountersBuilder& b) {
  b.add_u64_counter(l_swimstore_transactions, "transactions", "Transactions queued", "txn", kUseful);
  b.add_u64_counter(l_swimstore_operations, "operations", "Operations in them");
  b.add_time_avg(l_swimstore_queue_latency, "queue_latency", "Time of queue_transactions", "qlat", kUseful);
  b.add_time_avg(l_swimstore_throttle_latency, "throttle_latency",
                 "Time that transactions waited for others to become durable", "tlat", kUseful);
  b.add_time_avg(l_swimstore_space_latency, "space_latency", "Time that transactions waited for free space", "slat",
                 kUseful);
  b.add_time_avg(l_swimstore_space_throttle_latency, "space_throttle_latency",
                 "Time by which transactions were slowed for lack of space", "stlt", kUseful);
  b.add_time_avg(l_swimstore_plan_latency, "plan_latency", "Time to apply operations and choose slots", "plat",
                 kUseful);
  b.add_time_avg(l_swimstore_submit_latency, "submit_latency", "Time to encode and submit", "sblt", kUseful);
  b.add_time_avg(l_swimstore_commit_latency, "commit_latency", "Time from submission to durability", "clat", kCritical);
  b.add_u64_counter_histogram(l_swimstore_commit_latency_histogram, "commit_latency_histogram",
                              {"Latency (usec)", PerfHistogramCommon::SCALE_LOG2, 0, 50, 24},
                              {"Transaction size (bytes)", PerfHistogramCommon::SCALE_LOG2, 0, 512, 20},
                              "Time from submission to durability, by the size of the transaction");
  b.add_u64_counter(l_swimstore_encoded_bytes, "encoded_bytes", "Bytes of tree updates", nullptr, 0,
                    unit_t(UNIT_BYTES));
}

void add_data(PerfCountersBuilder& b) {
  const auto bytes = [&b](int index, const char* name, const char* description, const char* nick = nullptr) {
    b.add_u64_counter(index, name, description, nick, priority(nick), unit_t(UNIT_BYTES));
  };
  bytes(l_swimstore_write_bytes, "write_bytes", "Bytes written by callers", "wrb");
  bytes(l_swimstore_write_slot_bytes, "write_slot_bytes", "Bytes written to slots");
  b.add_u64_counter(l_swimstore_write_slots, "write_slots", "Slot writes");
  b.add_u64_counter(l_swimstore_write_split, "write_split", "Writes cut into several slots");
  b.add_time_avg(l_swimstore_compress_latency, "compress_latency",
                 "Average latency of compressing a piece of data, also in vain", "comp", kUseful);
  b.add_u64_counter(l_swimstore_incompressible, "incompressible",
                    "Pieces of data left uncompressed, because compression saved too little");
  b.add_time_avg(l_swimstore_decompress_latency, "decompress_latency", "Average latency of decompressing a blob",
                 "dcmp", kUseful);
  b.add_u64_counter(l_swimstore_write_merge_reads, "write_merge_reads", "Blocks read to complete unaligned writes");
  b.add_u64_counter(l_swimstore_write_unprimed, "write_unprimed", "Slot writes that needed a sync of their own");
  b.add_u64_counter(l_swimstore_relaxed_transactions, "relaxed_transactions",
                    "Transactions that were acknowledged before they were durable", "rlxd", kUseful);
  b.add_time_avg(l_swimstore_read_latency, "read_latency", "Time of a read", "rlat", kCritical);
  bytes(l_swimstore_read_bytes, "read_bytes", "Bytes read by callers", "rdb");
  bytes(l_swimstore_read_slot_bytes, "read_slot_bytes", "Bytes read from slots");
  bytes(l_swimstore_read_cache_hit_bytes, "read_cache_hit_bytes", "Bytes found in the data cache", "rchb");
  bytes(l_swimstore_read_cache_miss_bytes, "read_cache_miss_bytes", "Bytes not found in the data cache", "rcmb");
  b.add_u64_counter(l_swimstore_read_checksum_errors, "read_checksum_errors", "Blocks whose checksum was wrong", "csum",
                    kUseful);
  b.add_u64_counter(l_swimstore_read_retries, "read_retries", "Reads tried again", "retr", kUseful);
  b.add_u64_counter(l_swimstore_read_errors, "read_errors", "Reads that failed for good", "eio", kUseful);
}

void add_metadata(PerfCountersBuilder& b) {
  b.add_time_avg(l_swimstore_omap_latency, "omap_latency", "Time of an omap lookup", "olat", kUseful);
  b.add_time_avg(l_swimstore_omap_seek_latency, "omap_seek_latency", "Time of an omap iterator's seek", "oslt",
                 kUseful);
  b.add_time_avg(l_swimstore_omap_next_latency, "omap_next_latency", "Time of an omap iterator's step", "onlt",
                 kUseful);
  b.add_time_avg(l_swimstore_list_latency, "list_latency", "Time of a collection listing", "llat", kUseful);
  b.add_u64_counter(l_swimstore_slow_operations, "slow_operations",
                    "Operations that took swimstore_log_op_age or longer", "slow", kUseful);
}

void add_gauges(PerfCountersBuilder& b) {
  const auto bytes = [&b](int index, const char* name, const char* description, const char* nick = nullptr) {
    b.add_u64(index, name, description, nick, priority(nick), unit_t(UNIT_BYTES));
  };
  const auto count = [&b](int index, const char* name, const char* description, const char* nick = nullptr,
                          unit_t unit = UNIT_NONE) {
    b.add_u64_counter(index, name, description, nick, priority(nick), unit);
  };
  b.add_u64_counter(l_swimstore_onode_hits, "onode_hits", "Onodes found in memory", "ohit", kUseful);
  b.add_u64_counter(l_swimstore_onode_misses, "onode_misses", "Onodes looked up in the tree", "omis", kUseful);
  b.add_u64(l_swimstore_throttle_bytes, "throttle_bytes", "Bytes of transactions that are under way", "thrb", kUseful,
            unit_t(UNIT_BYTES));
  b.add_u64(l_swimstore_onodes, "onodes", "Onodes in memory");
  bytes(l_swimstore_onode_cache_bytes, "onode_cache_bytes", "Memory of onodes", "onmb");
  bytes(l_swimstore_data_cache_bytes, "data_cache_bytes", "Memory of cached data", "dcb");
  bytes(l_swimstore_block_cache_bytes, "block_cache_bytes", "Memory of cached tree blocks", "bcb");
  count(l_swimstore_block_cache_hits, "block_cache_hits", "Tree blocks found in memory", "bhit");
  count(l_swimstore_block_cache_misses, "block_cache_misses", "Tree blocks read", "bmis");
  count(l_swimstore_commit_groups, "commit_groups", "Commit groups made durable");
  count(l_swimstore_syncs, "syncs", "Syncs that commits asked for; where cubes share one, each counts", "sync");
  count(l_swimstore_log_bytes, "log_bytes", "Bytes written to the log", "logb", UNIT_BYTES);
  count(l_swimstore_external_bytes, "external_bytes", "Bytes written to slots by commit groups", "extb", UNIT_BYTES);
  bytes(l_swimstore_memtable_bytes, "memtable_bytes", "Memory of updates not yet in the tree", "memb");
  count(l_swimstore_memtable_flushes, "memtable_flushes", "Memtables written to the tree");
  count(l_swimstore_flush_bytes, "flush_bytes", "Bytes that flushes of memtables wrote", "flub", UNIT_BYTES);
  count(l_swimstore_compactions, "compactions", "Compactions of runs");
  count(l_swimstore_compaction_bytes, "compaction_bytes", "Bytes that compactions wrote", "cmpb", UNIT_BYTES);
  b.add_u64(l_swimstore_runs, "runs", "Runs of the tree", "runs", kUseful);
  bytes(l_swimstore_log_file_bytes, "log_file_bytes", "Size of the log on the host", "logf");
  bytes(l_swimstore_tree_file_bytes, "tree_file_bytes", "Size of the tree on the host", "tref");
  bytes(l_swimstore_slot_owned_bytes, "slot_owned_bytes", "Slots that hold data", "sown");
  bytes(l_swimstore_slot_free_bytes, "slot_free_bytes", "Slots that are free or soon will be", "sfre");
  bytes(l_swimstore_container_file_bytes, "container_file_bytes", "Size of the containers on the host", "cntf");
  count(l_swimstore_primed_bytes, "primed_bytes", "Bytes written ahead of demand", "prmb", UNIT_BYTES);
  count(l_swimstore_punched_bytes, "punched_bytes", "Bytes given back to the host", nullptr, UNIT_BYTES);
}

}  // namespace

StoreCounters::StoreCounters(CephContext* cct) : m_cct(cct) {
  PerfCountersBuilder builder(cct, "swimstore", l_swimstore_first, l_swimstore_last);
  add_transactions(builder);
  add_data(builder);
  add_metadata(builder);
  add_gauges(builder);
  m_counters = builder.create_perf_counters();
  m_cct->get_perfcounters_collection()->add(m_counters);
}

StoreCounters::~StoreCounters() {
  m_cct->get_perfcounters_collection()->remove(m_counters);
  delete m_counters;
}

void StoreCounters::refresh_gauges(const vtkv::DBStatistics& db, const ContainerStatistics& slots,
                                   const MemoryGauges& memory) {
  const std::pair<int, uint64_t> values[] = {
      {l_swimstore_onode_hits, memory.onode_hits},
      {l_swimstore_onode_misses, memory.onode_misses},
      {l_swimstore_throttle_bytes, memory.throttle_bytes},
      {l_swimstore_onodes, memory.onodes},
      {l_swimstore_onode_cache_bytes, memory.onode_bytes},
      {l_swimstore_data_cache_bytes, memory.data_bytes},
      {l_swimstore_block_cache_bytes, db.block_cache_bytes},
      {l_swimstore_block_cache_hits, db.block_cache_hits},
      {l_swimstore_block_cache_misses, db.block_cache_misses},
      {l_swimstore_commit_groups, db.commit_groups},
      {l_swimstore_syncs, db.syncs},
      {l_swimstore_log_bytes, db.log_bytes},
      {l_swimstore_external_bytes, db.external_bytes},
      {l_swimstore_memtable_bytes, db.memtable_bytes},
      {l_swimstore_memtable_flushes, db.memtable_flushes},
      {l_swimstore_flush_bytes, db.flush_bytes},
      {l_swimstore_compactions, db.compactions},
      {l_swimstore_compaction_bytes, db.compaction_bytes},
      {l_swimstore_runs, db.runs},
      {l_swimstore_log_file_bytes, db.log_file_bytes},
      {l_swimstore_tree_file_bytes, db.tree_file_bytes},
      {l_swimstore_slot_owned_bytes, slots.owned_bytes},
      {l_swimstore_slot_free_bytes, slots.free_bytes},
      {l_swimstore_container_file_bytes, slots.file_bytes},
      {l_swimstore_primed_bytes, slots.primed_bytes_total},
      {l_swimstore_punched_bytes, slots.punched_bytes_total},
  };
  for (const auto& [index, value] : values) {
    m_counters->set(index, value);
  }
}

}  // namespace swimstore
