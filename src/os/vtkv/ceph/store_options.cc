// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/store_options.h"

#include <algorithm>

#include "common/strtol.h"
#include "include/str_map.h"

namespace vtkv {

namespace {

struct Known {
  const char* name;
  uint64_t least;
  uint64_t most;
  void (*set)(Options*, uint64_t);
};

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kTiB = 1024 * 1024 * kMiB;

constexpr Known kKnown[] = {
    {"block_bytes", 4 * kKiB, kMiB, [](Options* o, uint64_t v) { o->geometry.block_bytes = static_cast<uint32_t>(v); }},
    {"block_cache_bytes", 0, kTiB, [](Options* o, uint64_t v) { o->block_cache_bytes = v; }},
    {"compress_blocks", 0, 1, [](Options* o, uint64_t v) { o->compress_blocks = v != 0; }},
    {"fragmented_values_min", 0, kMiB,
     [](Options* o, uint64_t v) { o->fragmented_values_min = static_cast<uint32_t>(v); }},
    {"gc_lookup_cost_bytes", 0, kMiB,
     [](Options* o, uint64_t v) { o->gc_lookup_cost_bytes = static_cast<uint32_t>(v); }},
    {"growth_factor", 2, 64, [](Options* o, uint64_t v) { o->growth_factor = static_cast<uint32_t>(v); }},
    {"initial_log_segments", 2, kMiB,
     [](Options* o, uint64_t v) { o->geometry.initial_log_segments = static_cast<uint32_t>(v); }},
    {"io_depth", 1, 4096, [](Options* o, uint64_t v) { o->io_depth = static_cast<unsigned>(v); }},
    {"log_segment_bytes", 16 * kKiB, kTiB, [](Options* o, uint64_t v) { o->geometry.log_segment_bytes = v; }},
    {"memtable_bytes", 4 * kKiB, kTiB, [](Options* o, uint64_t v) { o->memtable_bytes = v; }},
    {"value_separation_bytes", 0, kTiB, [](Options* o, uint64_t v) { o->value_separation_bytes = v; }},
    {"zone_bytes", 4 * kKiB, kTiB, [](Options* o, uint64_t v) { o->geometry.zone_bytes = v; }},
};

// Names that options had in earlier versions.
struct Renamed {
  const char* was;
  const char* is;
};
constexpr Renamed kRenamed[] = {
    {"scattered_values_min", "fragmented_values_min"},  // tidy: allow the old name
};

std::string known_names() {
  std::string names;
  for (const Known& known : kKnown) {
    names += names.empty() ? known.name : std::string(", ") + known.name;
  }
  return names;
}

Status apply_one(const std::string& name, const std::string& value, Options* options) {
  const auto known =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& one) { return name == one.name; });
  for (const auto& [was, is] : kRenamed) {
    if (name == was) {
      return Status::invalid_argument("option " + name + " of vtkv is called " + is + " now: give that one");
    }
  }
  if (known == std::end(kKnown)) {
    return Status::invalid_argument("vtkv has no option '" + name + "'; it has " + known_names());
  }
  std::string error;
  const int64_t number = strict_iecstrtoll(value, &error);
  if (!error.empty() || number < 0 || static_cast<uint64_t>(number) < known->least ||
      static_cast<uint64_t>(number) > known->most) {
    return Status::invalid_argument("option " + name + " of vtkv is '" + value + "'; use " +
                                    std::to_string(known->least) + " to " + std::to_string(known->most));
  }
  known->set(options, static_cast<uint64_t>(number));
  return {};
}

}  // namespace

Options default_store_options() {
  Options options;
  options.geometry.log_segment_bytes = 16 * kMiB;
  return options;
}

Status apply_store_options(const std::map<std::string, std::string>& values, Options* options) {
  Options changed = *options;
  for (const auto& [name, value] : values) {
    VTKV_RETURN_IF_ERROR(apply_one(name, value, &changed));
  }
  *options = changed;
  return {};
}

Status apply_store_options(const std::string& text, Options* options) {
  std::map<std::string, std::string> values;
  get_str_map(text, &values, ",; \t\n");
  return apply_store_options(values, options);
}

}  // namespace vtkv
