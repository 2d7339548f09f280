// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/engine.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vtkv/tool/device_counters.h"

namespace vtkv::bench {

namespace {

#ifdef VTKV_BENCH_ROCKSDB
constexpr auto kOpenRocksdb = &open_rocksdb;
constexpr auto kOpenBlobdb = &open_blobdb;
#else
constexpr Status (*kOpenRocksdb)(const EngineSettings&, std::unique_ptr<Engine>*) = nullptr;
constexpr Status (*kOpenBlobdb)(const EngineSettings&, std::unique_ptr<Engine>*) = nullptr;
#endif
#ifdef VTKV_BENCH_LEVELDB
constexpr auto kOpenLeveldb = &open_leveldb;
#else
constexpr Status (*kOpenLeveldb)(const EngineSettings&, std::unique_ptr<Engine>*) = nullptr;
#endif
#ifdef VTKV_BENCH_LMDB
constexpr auto kOpenLmdb = &open_lmdb;
#else
constexpr Status (*kOpenLmdb)(const EngineSettings&, std::unique_ptr<Engine>*) = nullptr;
#endif

// Names that vtkv's options had in earlier versions.
struct Renamed {
  std::string_view was;
  std::string_view is;
};
constexpr Renamed kRenamed[] = {{"merging", "auto_compaction"}, {"scattered", "fragmented"}};

const EngineKind* find_kind(std::string_view name) {
  for (const EngineKind& kind : engine_kinds()) {
    if (kind.name == name) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace

const std::vector<EngineKind>& engine_kinds() {
  static const std::vector<EngineKind> kinds = {
      {"vtkv",
       "this engine",
       {"auto_compaction", "compress", "gc_lookup_cost", "growth_factor", "purge", "runs_per_level", "fragmented",
        "separation", "single_flush", "space_target", "stitch"},
       &open_vtkv},
      {"rocksdb", "RocksDB, leveled", {"background_jobs", "universal"}, kOpenRocksdb},
      {"blobdb",
       "RocksDB with blob files",
       {"background_jobs", "min_blob_size", "gc_age_cutoff", "gc_force_threshold", "blob_file_bytes"},
       kOpenBlobdb},
      {"leveldb", "LevelDB", {}, kOpenLeveldb},
      {"lmdb", "LMDB, over the page cache, without a memory budget", {}, kOpenLmdb},
  };
  return kinds;
}

Status EngineSpec::parse(std::string_view text, EngineSpec* spec) {
  *spec = EngineSpec{.label = std::string(text)};
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(':', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (at == 0) {
      spec->name = part;
      continue;
    }
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return Status::invalid_argument(
          fmt::format("--engines {}: '{}' is no option; write NAME:OPTION=VALUE", text, part));
    }
    spec->options[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
  return {};
}

Status check_engine(const EngineSpec& spec) {
  const EngineKind* kind = find_kind(spec.name);
  if (!kind) {
    std::vector<std::string_view> names;
    for (const EngineKind& known : engine_kinds()) {
      names.push_back(known.name);
    }
    return Status::invalid_argument(
        fmt::format("--engines: there is no engine '{}'; choose from {}", spec.name, fmt::join(names, ", ")));
  }
  for (const auto& [was, is] : kRenamed) {
    if (spec.name == "vtkv" && spec.options.contains(std::string(was))) {
      return Status::invalid_argument(
          fmt::format("--engines {}: option {} is called {} now: give that one", spec.label, was, is));
    }
  }
  for (const auto& [name, value] : spec.options) {
    if (std::find(kind->options.begin(), kind->options.end(), name) == kind->options.end()) {
      return Status::invalid_argument(fmt::format("--engines {}: {} has no option '{}'; it has: {}", spec.label,
                                                  spec.name, name, fmt::join(kind->options, ", ")));
    }
  }
  if (!kind->open) {
    return Status::unsupported(
        fmt::format("engine {} is left out: its library was not there when this program was built", spec.name));
  }
  return {};
}

Status open_engine(const EngineSpec& spec, EngineSettings settings, std::unique_ptr<Engine>* engine) {
  VTKV_RETURN_IF_ERROR(check_engine(spec));
  settings.options = spec.options;
  return find_kind(spec.name)->open(settings, engine);
}

Status number_option(const EngineSettings& settings, const std::string& name, double otherwise, double* value) {
  *value = otherwise;
  const auto found = settings.options.find(name);
  if (found == settings.options.end()) {
    return {};
  }
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size() || !(*value >= 0)) {
    return Status::invalid_argument(fmt::format("--engines: {}={}: give a number of at least 0", name, text));
  }
  return {};
}

void wait_until_quiet(const std::string& path) {
  constexpr int kQuietSteps = 10, kStepsMax = 1200;
  const auto step = std::chrono::milliseconds(50);
  uint64_t seen = read_device_counters(path).written_bytes;
  for (int i = 0, quiet = 0; i < kStepsMax && quiet < kQuietSteps; ++i, ++quiet) {
    std::this_thread::sleep_for(step);
    const uint64_t now = read_device_counters(path).written_bytes;
    if (now != seen) {
      seen = now;
      quiet = 0;
    }
  }
}

}  // namespace vtkv::bench
