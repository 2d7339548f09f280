// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/result.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

namespace vtkv::bench {

namespace {

constexpr std::string_view kNames[kMetrics] = {"ops_per_s",
                                               "mb_per_s",
                                               "operations",
                                               "seconds",
                                               "settle_seconds",
                                               "p50_us",
                                               "p99_us",
                                               "p999_us",
                                               "max_us",
                                               "write_amplification",
                                               "read_amplification",
                                               "space_amplification",
                                               "device_reads_per_op",
                                               "flushes_per_op",
                                               "user_written_bytes",
                                               "user_read_bytes",
                                               "device_written_bytes",
                                               "device_read_bytes",
                                               "primed_bytes",
                                               "cpu_us_per_op",
                                               "worst_second_ratio",
                                               "stalls",
                                               "delays",
                                               "delay_seconds",
                                               "log_waits",
                                               "filter_bytes_per_key",
                                               "log_bytes",
                                               "flush_bytes",
                                               "compaction_bytes",
                                               "gc_bytes"};

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) {
    return std::nullopt;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Three or so significant digits, at most eight characters.
std::string brief(const std::optional<double>& value) {
  if (!value) {
    return "-";
  }
  const double number = *value;
  return number >= 100 || number == 0 ? fmt::format("{:.0f}", number)
         : number >= 10               ? fmt::format("{:.1f}", number)
                                      : fmt::format("{:.2f}", number);
}

std::string json_number(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? fmt::format("{}", static_cast<int64_t>(value))
                                                                   : fmt::format("{:.6g}", value);
}

}  // namespace

std::vector<Result> merge_rounds(const std::vector<Result>& results) {
  std::vector<Result> merged;
  for (const Result& result : results) {
    if (std::any_of(merged.begin(), merged.end(), [&](const Result& seen) { return seen.same_run(result); })) {
      continue;
    }
    Result& one = merged.emplace_back(result);
    one.rounds = 0;
    std::array<std::vector<double>, kMetrics> seen;
    for (const Result& other : results) {
      if (!other.same_run(result)) {
        continue;
      }
      ++one.rounds;
      for (size_t i = 0; i < kMetrics; ++i) {
        if (other.metrics[i]) {
          seen[i].push_back(*other.metrics[i]);
        }
      }
    }
    for (size_t i = 0; i < kMetrics; ++i) {
      one.metrics[i] = median(std::move(seen[i]));
    }
  }
  return merged;
}

std::string to_table(const std::vector<Result>& results) {
  constexpr std::pair<Metric, std::string_view> kColumns[] = {{Metric::ops_per_s, "op/s"},
                                                              {Metric::mb_per_s, "MB/s"},
                                                              {Metric::p50_us, "p50 us"},
                                                              {Metric::p99_us, "p99 us"},
                                                              {Metric::p999_us, "p99.9"},
                                                              {Metric::max_us, "max us"},
                                                              {Metric::write_amplification, "write"},
                                                              {Metric::read_amplification, "read"},
                                                              {Metric::space_amplification, "space"},
                                                              {Metric::device_reads_per_op, "reads/op"},
                                                              {Metric::flushes_per_op, "flush/op"},
                                                              {Metric::cpu_us_per_op, "cpu us"},
                                                              {Metric::worst_second_ratio, "worst s"},
                                                              {Metric::stalls, "stalls"}};
  size_t widest = 6;
  for (const Result& result : results) {
    widest = std::max(widest, result.engine.size());
  }
  std::string text;
  const Result* heading = nullptr;
  for (const Result& result : results) {
    if (!heading || heading->workload != result.workload || heading->value_bytes != result.value_bytes ||
        heading->group != result.group) {
      heading = &result;
      text += fmt::format("\n{}{}{}, {} B values, {} keys, {} thread{}{}\n", result.group,
                          result.group.empty() ? "" : ": ", result.workload, result.value_bytes, result.keys,
                          result.threads, result.threads == 1 ? "" : "s", result.sync ? ", synced" : "");
      text += fmt::format("{:<{}}", "engine", widest);
      for (const auto& [metric, title] : kColumns) {
        text += fmt::format(" {:>8}", title);
      }
      text += "  x rocksdb\n";
    }
    text += fmt::format("{:<{}}", result.engine, widest);
    for (const auto& [metric, title] : kColumns) {
      text += fmt::format(" {:>8}", brief(result[metric]));
    }
    for (const Result& peer : results) {
      if (peer.engine == "rocksdb" && peer.workload == result.workload && peer.value_bytes == result.value_bytes &&
          peer.group == result.group && peer[Metric::ops_per_s] && result[Metric::ops_per_s]) {
        text += fmt::format("  {:9.2f}", *result[Metric::ops_per_s] / *peer[Metric::ops_per_s]);
      }
    }
    text += '\n';
  }
  return text;
}

std::string to_json(const std::vector<Result>& results) {
  std::string text = "{\"results\": [";
  for (const Result& result : results) {
    text += &result == results.data() ? "\n" : ",\n";
    text += fmt::format(
        R"( {{"group": "{}", "engine": "{}", "workload": "{}", "value_bytes": {}, "keys": {}, "memory_bytes": {}, )"
        R"("threads": {}, "sync": {}, "rounds": {})",
        result.group, result.engine, result.workload, result.value_bytes, result.keys, result.memory_bytes,
        result.threads, result.sync, result.rounds);
    for (size_t i = 0; i < kMetrics; ++i) {
      text += fmt::format(", \"{}\": {}", kNames[i], result.metrics[i] ? json_number(*result.metrics[i]) : "null");
    }
    text += '}';
  }
  return text + "\n]}\n";
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  return out ? Status() : Status::from_errno(errno ? errno : EIO, path + ": cannot be written; choose another place");
}

}  // namespace vtkv::bench
