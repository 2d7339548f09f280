// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commit pipeline has done, for DB::statistics(). Thread-safe: counted by the commit worker, read by anybody.
#pragma once

#include <atomic>
#include <cstdint>

#include "vtkv/db.h"

namespace vtkv {

class CommitCounters {
 public:
  void count_data(uint64_t bytes) { m_external_bytes.fetch_add(bytes, std::memory_order_relaxed); }
  void count_group(uint64_t record_bytes) {
    m_groups.fetch_add(1, std::memory_order_relaxed);
    m_log_bytes.fetch_add(record_bytes, std::memory_order_relaxed);
  }
  void count_syncs(size_t syncs) { m_syncs.fetch_add(syncs, std::memory_order_relaxed); }
  // A group that was held back so long for flushes, compactions or the collector.
  void count_throttled(uint64_t held_us) {
    m_throttled_groups.fetch_add(1, std::memory_order_relaxed);
    m_throttled_us.fetch_add(held_us, std::memory_order_relaxed);
  }
  uint64_t log_bytes() const { return m_log_bytes.load(std::memory_order_relaxed); }
  void add_to(DBStatistics* statistics) const {
    statistics->commit_groups = m_groups.load(std::memory_order_relaxed);
    statistics->log_bytes = m_log_bytes.load(std::memory_order_relaxed);
    statistics->external_bytes = m_external_bytes.load(std::memory_order_relaxed);
    statistics->syncs = m_syncs.load(std::memory_order_relaxed);
    statistics->throttled_groups = m_throttled_groups.load(std::memory_order_relaxed);
    statistics->throttled_us = m_throttled_us.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> m_log_bytes{0};
  std::atomic<uint64_t> m_external_bytes{0};
  std::atomic<uint64_t> m_groups{0};
  std::atomic<uint64_t> m_syncs{0};
  std::atomic<uint64_t> m_throttled_groups{0};
  std::atomic<uint64_t> m_throttled_us{0};
};

}  // namespace vtkv
