// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/gate.h"

#include <chrono>

#include <fmt/format.h>

#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/tool/bench/runner.h"

namespace vtkv::bench {

namespace {

constexpr size_t kMemoryBytes = 64 << 20;
constexpr uint64_t kDataBytes = 4 * kMemoryBytes;
constexpr unsigned kSyncedWriters = 32;
constexpr uint64_t kStitchedValueBytes = 256;
constexpr uint64_t kSmall[] = {64, 256}, kLarge[] = {1024, 16384};

std::vector<EngineSpec> engines(std::initializer_list<const char*> labels) {
  std::vector<EngineSpec> specs;
  for (const char* label : labels) {
    EngineSpec spec;
    if (const Status status = EngineSpec::parse(label, &spec); !status.ok()) {
      continue;
    }
    if (const Status status = check_engine(spec); status.ok()) {
      specs.push_back(std::move(spec));
    } else {
      say(std::string(status.message()));
    }
  }
  return specs;
}

std::vector<const WorkloadKind*> workloads(std::initializer_list<const char*> names) {
  std::vector<const WorkloadKind*> kinds;
  for (const char* name : names) {
    kinds.push_back(find_workload(name));
  }
  return kinds;
}

// What the lines below look up.
class Verdict {
 public:
  explicit Verdict(const std::vector<Result>& results) : m_results(results) {}

  const Result* find(std::string_view group, std::string_view engine, std::string_view workload,
                     uint64_t value_bytes) const {
    for (const Result& result : m_results) {
      if (result.group == group && result.engine == engine && result.workload == workload &&
          result.value_bytes == value_bytes) {
        return &result;
      }
    }
    return nullptr;
  }
  std::optional<double> get(std::string_view group, std::string_view engine, std::string_view workload,
                            uint64_t value_bytes, Metric metric) const {
    const Result* found = find(group, engine, workload, value_bytes);
    return found ? (*found)[metric] : std::nullopt;
  }
  // The first engine's figure to the second's.
  std::optional<double> ratio(std::string_view group, std::string_view engine, std::string_view other,
                              std::string_view workload, uint64_t value_bytes, Metric metric) const {
    return divide(get(group, engine, workload, value_bytes, metric), get(group, other, workload, value_bytes, metric));
  }
  static std::optional<double> divide(std::optional<double> a, std::optional<double> b) {
    return a && b && *b > 0 ? std::optional(*a / *b) : std::nullopt;
  }
  // Of the load and the overwrite that followed.
  std::optional<double> write_amplification(std::string_view engine, uint64_t value_bytes) const {
    double device = 0, user = 0;
    for (const char* workload : {"fillrandom", "overwrite"}) {
      const Result* found = find("load", engine, workload, value_bytes);
      if (!found || !(*found)[Metric::device_written_bytes]) {
        return std::nullopt;
      }
      device += *(*found)[Metric::device_written_bytes] - *(*found)[Metric::primed_bytes];
      user += *(*found)[Metric::user_written_bytes];
    }
    return device / user;
  }

  void at_most(const std::string& what, std::optional<double> figure, double bound, const std::string& remark = "") {
    line(what, figure, "at most", bound, figure && *figure <= bound, remark);
  }
  void at_least(const std::string& what, std::optional<double> figure, double bound, const std::string& remark = "") {
    line(what, figure, "at least", bound, figure && *figure >= bound, remark);
  }
  void note(const std::string& text) { m_text += "      " + text + "\n"; }
  const std::string& text() const { return m_text; }
  bool passed() const { return m_passed; }

 private:
  void line(const std::string& what, std::optional<double> figure, std::string_view relation, double bound, bool good,
            const std::string& remark) {
    m_passed = m_passed && good;
    m_text += fmt::format("{}  {}: {}, {} {:.4g}{}\n",
                          !figure ? "NONE"
                          : good  ? "PASS"
                                  : "FAIL",
                          what, figure ? fmt::format("{:.4g}", *figure) : "not measured", relation, bound,
                          remark.empty() ? "" : " (" + remark + ")");
  }

  const std::vector<Result>& m_results;
  std::string m_text;
  bool m_passed = true;
};

std::string show(std::optional<double> value) { return value ? fmt::format("{:.3g}", *value) : "?"; }

void judge_writes(Verdict* verdict) {
  for (const uint64_t size : kLarge) {
    verdict->at_most(
        fmt::format("write amplification, load and 3x overwrite, {} B", size),
        verdict->write_amplification("vtkv", size), 1.3,
        fmt::format("primed {:.0f} MiB apart; rocksdb {}, blobdb {}",
                    verdict->get("load", "vtkv", "fillrandom", size, Metric::primed_bytes).value_or(0) / (1 << 20) +
                        verdict->get("load", "vtkv", "overwrite", size, Metric::primed_bytes).value_or(0) / (1 << 20),
                    show(verdict->write_amplification("rocksdb", size)),
                    show(verdict->write_amplification("blobdb", size))));
    verdict->at_most(fmt::format("space amplification after that, {} B", size),
                     verdict->get("load", "vtkv", "overwrite", size, Metric::space_amplification), 2.0,
                     fmt::format("rocksdb {}, blobdb {}",
                                 show(verdict->get("load", "rocksdb", "overwrite", size, Metric::space_amplification)),
                                 show(verdict->get("load", "blobdb", "overwrite", size, Metric::space_amplification))));
  }
  for (const uint64_t size : kSmall) {
    verdict->at_most(
        fmt::format("write amplification to rocksdb's, {} B", size),
        Verdict::divide(verdict->write_amplification("vtkv", size), verdict->write_amplification("rocksdb", size)),
        1.0 / 3,
        fmt::format("{} and {}", show(verdict->write_amplification("vtkv", size)),
                    show(verdict->write_amplification("rocksdb", size))));
  }
  for (const char* workload : {"fillrandom", "overwrite"}) {
    for (const auto& [size, bound] : {std::pair<uint64_t, double>{64, 1}, {1024, 3}, {16384, 4}}) {
      verdict->at_least(fmt::format("{} to rocksdb's, {} B", workload, size),
                        verdict->ratio("load", "vtkv", "rocksdb", workload, size, Metric::ops_per_s), bound);
    }
  }
}

void judge_synced(Verdict* verdict, const std::string& path) {
  for (const uint64_t size : kLarge) {
    double ceiling = 0;
    const Status status = flush_ceiling(path, kSyncedWriters, size, &ceiling);
    verdict->at_least(fmt::format("synced overwrite to rocksdb's, {} writers, {} B", kSyncedWriters, size),
                      verdict->ratio("synced", "vtkv", "rocksdb", "overwrite", size, Metric::ops_per_s), 3,
                      fmt::format("{} op/s; the device's flush allows {}",
                                  show(verdict->get("synced", "vtkv", "overwrite", size, Metric::ops_per_s)),
                                  status.ok() ? fmt::format("{:.0f}", ceiling) : "?"));
  }
}

void judge_reads(Verdict* verdict) {
  for (const uint64_t size : {64, 256, 1024, 16384}) {
    verdict->at_most(fmt::format("device reads per lookup, {} B", size),
                     verdict->get("load", "vtkv", "readrandom", size, Metric::device_reads_per_op), 1.05);
    verdict->at_least(fmt::format("readrandom to rocksdb's, {} B", size),
                      verdict->ratio("load", "vtkv", "rocksdb", "readrandom", size, Metric::ops_per_s), 1);
    verdict->at_least(fmt::format("readseq after a random load to rocksdb's, {} B", size),
                      verdict->ratio("load", "vtkv", "rocksdb", "readseq", size, Metric::ops_per_s),
                      size < 1024 ? 0.9 : 1);
  }
  verdict->at_most("filter bytes per key", verdict->get("load", "vtkv", "readrandom", 64, Metric::filter_bytes_per_key),
                   3.4, "2 at load 0.75");
  for (const uint64_t size : kLarge) {
    for (const std::string workload : {"ycsb_a", "ycsb_b", "ycsb_c", "ycsb_d", "ycsb_e", "ycsb_f"}) {
      const char* const group = workload == "ycsb_e" ? "scans" : "ycsb";
      double best = 0;
      std::string who;
      for (const char* peer : {"rocksdb", "blobdb", "leveldb"}) {
        if (const auto speed = verdict->get(group, peer, workload, size, Metric::ops_per_s); speed && *speed > best) {
          best = *speed;
          who = peer;
        }
      }
      verdict->at_least(fmt::format("{} to the best peer's, {} B", workload, size),
                        Verdict::divide(verdict->get(group, "vtkv", workload, size, Metric::ops_per_s), best), 1, who);
    }
  }
}

void judge_deletes(Verdict* verdict) {
  const auto speed = [&](const char* engine, const char* workload) {
    return verdict->get("deletes", engine, workload, 64, Metric::ops_per_s);
  };
  verdict->at_most("time of a scan over a deleted range to that over an empty one",
                   Verdict::divide(speed("vtkv", "scan_empty"), speed("vtkv", "scan_range_deleted")), 2,
                   fmt::format("rocksdb {}", show(Verdict::divide(speed("rocksdb", "scan_empty"),
                                                                  speed("rocksdb", "scan_range_deleted")))));
  verdict->at_most("the same over keys deleted one by one",
                   Verdict::divide(speed("vtkv", "scan_empty"), speed("vtkv", "scan_point_deleted")), 2,
                   fmt::format("rocksdb {}", show(Verdict::divide(speed("rocksdb", "scan_empty"),
                                                                  speed("rocksdb", "scan_point_deleted")))));
  verdict->at_most("time of 10,000 range deletes to that of point deletes",
                   Verdict::divide(speed("vtkv", "deleterandom"), speed("vtkv", "delete_range")), 2);
}

// What a compaction leaves for later has to be paid too: the time counts until the engine has settled.
void judge_stitching(Verdict* verdict) {
  const auto whole_speed = [&](const char* engine) -> std::optional<double> {
    const Result* found = verdict->find("sequential", engine, "sequential_insertion", kStitchedValueBytes);
    return found ? std::optional(*(*found)[Metric::operations] /
                                 (*(*found)[Metric::seconds] + *(*found)[Metric::settle_seconds]))
                 : std::nullopt;
  };
  verdict->at_least("sequential insertion with stitching to that without",
                    Verdict::divide(whole_speed("vtkv"), whole_speed("vtkv:stitch=inf")), 2.5,
                    fmt::format("write amplification {} and {}",
                                show(verdict->get("sequential", "vtkv", "sequential_insertion", kStitchedValueBytes,
                                                  Metric::write_amplification)),
                                show(verdict->get("sequential", "vtkv:stitch=inf", "sequential_insertion",
                                                  kStitchedValueBytes, Metric::write_amplification))));
  verdict->at_least(
      "the scan after that, likewise",
      verdict->ratio("sequential", "vtkv", "vtkv:stitch=inf", "readseq", kStitchedValueBytes, Metric::ops_per_s), 0.9);
}

void judge_background(Verdict* verdict) {
  verdict->at_least("load beside garbage collection flat out to that without",
                    Verdict::divide(verdict->get("gc", "vtkv", "overwrite_gc", 1024, Metric::ops_per_s),
                                    verdict->get("gc", "vtkv", "overwrite", 1024, Metric::ops_per_s)),
                    2.0 / 3);
  verdict->at_most(
      "space amplification after a full garbage collection",
      verdict->get("gc", "vtkv", "gc", 1024, Metric::space_amplification), 1.3,
      fmt::format("{} MB written",
                  show(Verdict::divide(verdict->get("gc", "vtkv", "gc", 1024, Metric::device_written_bytes), 1e6))));
  judge_stitching(verdict);
  const auto steady = [&](std::string_view engine, Metric metric) {
    return verdict->get("steady", engine, "overwrite", 1024, metric);
  };
  verdict->at_most("stalls of 0.1 s and more in a minute of overwrite", steady("vtkv", Metric::stalls), 0,
                   fmt::format("rocksdb {}; delayed {} times, {} s in all, rocksdb {}, {} s",
                               show(steady("rocksdb", Metric::stalls)), show(steady("vtkv", Metric::delays)),
                               show(steady("vtkv", Metric::delay_seconds)), show(steady("rocksdb", Metric::delays)),
                               show(steady("rocksdb", Metric::delay_seconds))));
  verdict->at_least("its worst second to the median one", steady("vtkv", Metric::worst_second_ratio), 0.5,
                    fmt::format("rocksdb {}", show(steady("rocksdb", Metric::worst_second_ratio))));
}

}  // namespace

std::vector<Group> gate_groups() {
  Group base;
  base.data_bytes = kDataBytes;
  base.memory_bytes = kMemoryBytes;
  base.load.seconds = 5;

  Group load = base;
  load.name = "load";
  load.workloads = workloads({"fillrandom", "readseq", "readrandom", "overwrite"});
  load.load.overwrites = 3;
  Group small = load, large = load;
  small.engines = engines({"vtkv", "rocksdb"});
  small.value_sizes.assign(std::begin(kSmall), std::end(kSmall));
  large.engines = engines({"vtkv", "rocksdb", "blobdb"});
  large.value_sizes.assign(std::begin(kLarge), std::end(kLarge));

  Group synced = base;
  synced.name = "synced";
  synced.engines = engines({"vtkv", "rocksdb"});
  synced.workloads = workloads({"overwrite"});
  synced.value_sizes = large.value_sizes;
  synced.sync = true;
  synced.load.threads = kSyncedWriters;
  synced.load.by_time = true;
  synced.load.seconds = 8;

  Group ycsb = base;
  ycsb.name = "ycsb";
  ycsb.engines = engines({"vtkv", "rocksdb", "blobdb", "leveldb"});
  ycsb.workloads = workloads({"ycsb_a", "ycsb_b", "ycsb_c", "ycsb_f", "ycsb_d"});
  ycsb.value_sizes = large.value_sizes;
  ycsb.load.threads = 4;
  // From a new load, as YCSB's authors advise; and for longer, since scans change what they find.
  Group scans = ycsb;
  scans.name = "scans";
  scans.workloads = workloads({"ycsb_e"});
  scans.load.seconds = 30;

  Group deletes = base;
  deletes.name = "deletes";
  deletes.engines = engines({"vtkv", "rocksdb"});
  deletes.workloads =
      workloads({"scan_empty", "deleterandom", "delete_range", "scan_range_deleted", "scan_point_deleted"});
  deletes.value_sizes = {64};
  deletes.load.seconds = 3;

  Group gc = base;
  gc.name = "gc";
  gc.engines = engines({"vtkv"});
  gc.workloads = workloads({"overwrite", "overwrite_gc", "gc"});
  gc.value_sizes = {1024};

  Group steady = base;
  steady.name = "steady";
  steady.engines = engines({"vtkv", "rocksdb"});
  steady.workloads = workloads({"overwrite"});
  steady.value_sizes = {1024};
  steady.load.by_time = true;
  steady.load.seconds = 60;

  // Insertion and scan against the stitching threshold.
  Group sequential = base;
  sequential.name = "sequential";
  sequential.engines =
      engines({"vtkv", "vtkv:stitch=0", "vtkv:stitch=1048576", "vtkv:stitch=inf", "vtkv:auto_compaction=0", "rocksdb"});
  sequential.workloads = workloads({"sequential_insertion", "readseq"});
  sequential.value_sizes = {kStitchedValueBytes};
  sequential.data_bytes = 2 * kMemoryBytes;
  sequential.load.seconds = 3;
  Group append = sequential;
  append.name = "append";
  append.workloads = workloads({"random_append", "readseq"});

  // Write against space amplification.
  Group curve = base;
  curve.name = "curve";
  curve.engines =
      engines({"vtkv:space_target=1.3", "vtkv:space_target=1.6", "vtkv:space_target=2", "vtkv:space_target=3",
               "blobdb:gc_age_cutoff=0.25", "blobdb:gc_age_cutoff=0.5", "blobdb:gc_age_cutoff=1"});
  curve.workloads = workloads({"fillrandom", "overwrite"});
  curve.value_sizes = {1024};
  curve.load.overwrites = 3;

  return {large, small, synced, ycsb, scans, deletes, gc, steady, sequential, append, curve};
}

std::vector<Group> quick_groups() {
  Group group;
  group.engines = engines({"vtkv", "rocksdb", "blobdb", "leveldb", "lmdb"});
  group.workloads = workloads({"fillrandom", "readrandom", "readseq", "ycsb_a", "delete_range"});
  group.value_sizes = {1024};
  group.data_bytes = 16 << 20;
  group.memory_bytes = 4 << 20;
  group.load.seconds = 0.5;
  group.load.threads = 2;
  return {group};
}

Status flush_ceiling(const std::string& path, unsigned writers, uint64_t bytes, double* ops_per_s) {
  constexpr uint64_t kFileBytes = 64 << 20;
  constexpr auto kFor = std::chrono::seconds(2);
  Env* env = posix_env();
  const std::string name = path + "/ceiling";
  std::unique_ptr<File> file;
  VTKV_RETURN_IF_ERROR(env->open_file(name, {.create = true}, &file));
  VTKV_RETURN_IF_ERROR(file->write_zeros(0, kFileBytes));
  VTKV_RETURN_IF_ERROR(file->sync());
  const uint64_t group_bytes = (writers * bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
  AlignedBuffer buffer(group_bytes);
  buffer.append(std::string(group_bytes, 'c'));
  const auto start = std::chrono::steady_clock::now();
  uint64_t groups = 0, offset = 0;
  for (; std::chrono::steady_clock::now() - start < kFor; ++groups, offset += group_bytes) {
    offset = offset + 2 * group_bytes > kFileBytes ? 0 : offset;
    VTKV_RETURN_IF_ERROR(file->write(offset, buffer.data(), group_bytes));
    VTKV_RETURN_IF_ERROR(file->sync());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  *ops_per_s = static_cast<double>(groups * writers) / seconds;
  file.reset();
  return env->remove_file(name);
}

std::string gate_verdict(const std::vector<Result>& results, const std::string& path, bool* passed) {
  Verdict verdict(results);
  judge_writes(&verdict);
  judge_synced(&verdict, path);
  judge_reads(&verdict);
  judge_deletes(&verdict);
  judge_background(&verdict);
  *passed = verdict.passed();
  return verdict.text();
}

}  // namespace vtkv::bench
