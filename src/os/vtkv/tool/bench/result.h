// SPDX-License-Identifier: LGPL-2.1-or-later
// What one workload on one engine gave, and how results are merged, printed and written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/status.h"

namespace vtkv::bench {

// Where one is unknown (no block device of its own, too few seconds) it is absent, and null in JSON.
enum class Metric {
  ops_per_s,
  mb_per_s,                 // 10^6 bytes of keys and values, as the user counts
  operations,
  seconds,                  // of the operations, without settling
  settle_seconds,           // until the engine's background work was done
  p50_us,
  p99_us,
  p999_us,
  max_us,
  write_amplification,      // device bytes without priming, settling included, per user byte
  read_amplification,       // device bytes read per user byte read
  space_amplification,      // allocated bytes per live user byte, settled
  device_reads_per_op,
  flushes_per_op,
  user_written_bytes,
  user_read_bytes,
  device_written_bytes,
  device_read_bytes,
  primed_bytes,
  cpu_us_per_op,            // all threads, settling included
  worst_second_ratio,       // operations of the worst whole second to those of the median one
  stalls,                   // operations of a tenth of a second and more
  delays,                   // of writers by background work, as the engine counts them
  delay_seconds,
  log_waits,
  filter_bytes_per_key,
  log_bytes,
  flush_bytes,
  compaction_bytes,
  gc_bytes,
  count_                    // the number of metrics
};
inline constexpr size_t kMetrics = static_cast<size_t>(Metric::count_);

struct Result {
  std::string group;   // of a suite; empty otherwise
  std::string engine, workload;
  uint64_t value_bytes = 0, keys = 0, memory_bytes = 0;
  unsigned threads = 1, rounds = 1;
  bool sync = false;
  std::array<std::optional<double>, kMetrics> metrics;

  std::optional<double>& operator[](Metric metric) { return metrics[static_cast<size_t>(metric)]; }
  const std::optional<double>& operator[](Metric metric) const { return metrics[static_cast<size_t>(metric)]; }
  bool same_run(const Result& other) const {
    return group == other.group && engine == other.engine && workload == other.workload &&
           value_bytes == other.value_bytes;
  }
};

// Results of the same group, engine, workload and value size become one, with the median of each metric.
std::vector<Result> merge_rounds(const std::vector<Result>& results);

// A table for people: per workload and value size one line per engine, with its ratio to rocksdb's.
std::string to_table(const std::vector<Result>& results);
std::string to_json(const std::vector<Result>& results);
Status write_text(const std::string& path, const std::string& text);

}  // namespace vtkv::bench
