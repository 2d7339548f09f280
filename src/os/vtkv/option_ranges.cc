// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/option_ranges.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "vtkv/env.h"

namespace vtkv {

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kTiB = 1024 * kGiB;
constexpr uint64_t kPiB = 1024 * kTiB;

// Of a whole number; 0 may stand for something of its own.
struct Range {
  const char* name;
  uint64_t value, least, most;
  bool or_zero = false;
};

Status check(const Range& range) {
  if ((range.value >= range.least && range.value <= range.most) || (range.or_zero && range.value == 0)) {
    return {};
  }
  return Status::invalid_argument("option " + std::string(range.name) + " is " + std::to_string(range.value) +
                                  ": use " + (range.or_zero ? "0, or " : "") + std::to_string(range.least) + " to " +
                                  std::to_string(range.most));
}

struct RealRange {
  const char* name;
  double value, least, most;
  bool or_zero = false;
};

std::string to_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

// Not a number is in no range.
Status check(const RealRange& range) {
  if ((range.value >= range.least && range.value <= range.most) || (range.or_zero && range.value == 0)) {
    return {};
  }
  return Status::invalid_argument("option " + std::string(range.name) + " is " + to_text(range.value) + ": use " +
                                  (range.or_zero ? "0, or " : "") + to_text(range.least) + " to " +
                                  to_text(range.most));
}

}  // namespace

// stitch_threshold_bytes and purge_tombstones_min may be any number.
Status check_options(const Options& options) {
  for (const Range& range : {
           Range{"memtable_bytes", options.memtable_bytes, 4 * kKiB, kTiB},
           Range{"checkpoint_log_bytes", options.checkpoint_log_bytes, 4 * kKiB, kPiB, /*or_zero=*/true},
           Range{"block_cache_bytes", options.block_cache_bytes, 0, kPiB},
           Range{"value_separation_bytes", options.value_separation_bytes, 0, kTiB},
           Range{"fragmented_values_min", options.fragmented_values_min, 0, kMiB},
           Range{"gc_lookup_cost_bytes", options.gc_lookup_cost_bytes, 0, kGiB},
           Range{"runs_per_level", options.runs_per_level, 2, 1024},
           Range{"growth_factor", options.growth_factor, 2, 1024},
           Range{"primed_bytes_per_commit", options.primed_bytes_per_commit, 0, kTiB},
           Range{"io_depth", options.io_depth, 1, 4096},
       }) {
    VTKV_RETURN_IF_ERROR(check(range));
  }
  VTKV_RETURN_IF_ERROR(
      check(RealRange{"space_amplification_target", options.space_amplification_target, 1, 1e6, /*or_zero=*/true}));
  return check(RealRange{"filter_false_positive_rate", options.filter_false_positive_rate, 1e-9, 0.5});
}

Status check_log_geometry(const Geometry& geometry) {
  VTKV_RETURN_IF_ERROR(check(Range{"log_segment_bytes", geometry.log_segment_bytes, 4 * kIoAlignment, 4 * kGiB}));
  if (geometry.log_segment_bytes % kIoAlignment != 0) {
    return Status::invalid_argument("option log_segment_bytes is " + std::to_string(geometry.log_segment_bytes) +
                                    ": use a multiple of " + std::to_string(kIoAlignment));
  }
  return check(Range{"initial_log_segments", geometry.initial_log_segments, 2, 65536});
}

Status check_options(const DefragmentOptions& options) {
  VTKV_RETURN_IF_ERROR(check(Range{"bytes_per_step", options.bytes_per_step, 4 * kKiB, kTiB}));
  VTKV_RETURN_IF_ERROR(check(Range{"bytes_per_second", options.bytes_per_second, 0, kPiB}));
  return check(RealRange{"gain_min", options.gain_min, 0, 1e6});
}

}  // namespace vtkv
