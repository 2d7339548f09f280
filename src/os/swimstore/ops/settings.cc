// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/settings.h"

#include <bit>

#include <fmt/format.h>

#include "common/ceph_context.h"
#include "common/config.h"

#include "swimstore/ops/options.h"
#include "swimstore/ops/pool_options.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

uint64_t size_value(CephContext* cct, const char* name) { return cct->_conf.get_val<Option::size_t>(name); }

Status check_names(CephContext* cct) {
  for (const auto& [was, is] : kRenamedOptions) {
    if (!cct->_conf.get_val<std::string>(was).empty()) {
      return Status::invalid_argument(fmt::format("option {} is called {} now: remove it and set that one", was, is));
    }
  }
  return {};
}

Status check_range(const char* name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) {
    return {};
  }
  return Status::invalid_argument(fmt::format("option {} is {}: it must be from {} to {}", name, value, least, most));
}

// A size that files are laid out by: whole blocks.
Status check_layout(const char* name, uint64_t value, uint64_t least, uint64_t most) {
  VTKV_RETURN_IF_ERROR(check_range(name, value, least, most));
  if (value % kBlockBytes == 0) {
    return {};
  }
  return Status::invalid_argument(
      fmt::format("option {} is {}: it must be a multiple of {}", name, value, kBlockBytes));
}

Status parse_flush_mode(const std::string& text, FlushMode* mode) {
  if (text == "auto") {
    *mode = FlushMode::automatic;
  } else if (text == "single") {
    *mode = FlushMode::single;
  } else if (text == "per-file") {
    *mode = FlushMode::per_file;
  } else {
    return Status::invalid_argument(
        fmt::format("option swimstore_flush_mode is '{}': it must be auto, single or per-file", text));
  }
  return {};
}

}  // namespace

Status Settings::read(CephContext* cct, Settings* settings) {
  VTKV_RETURN_IF_ERROR(check_names(cct));
  std::set<int64_t> relaxed;
  VTKV_RETURN_IF_ERROR(parse_relaxed_pools(cct->_conf.get_val<std::string>(kRelaxedPoolsOption), &relaxed));
  settings->geometry.log_segment_bytes = size_value(cct, "swimstore_log_segment_size");
  const uint64_t segments = cct->_conf.get_val<uint64_t>("swimstore_log_segments");
  VTKV_RETURN_IF_ERROR(check_range("swimstore_log_segments", segments, 2, 1024));
  settings->geometry.initial_log_segments = static_cast<uint32_t>(segments);
  settings->geometry.zone_bytes = size_value(cct, "swimstore_zone_size");
  const uint64_t tree_block_bytes = size_value(cct, "swimstore_tree_block_size");
  VTKV_RETURN_IF_ERROR(check_layout("swimstore_tree_block_size", tree_block_bytes, kBlockBytes, 64 * kKiB));
  settings->geometry.block_bytes = static_cast<uint32_t>(tree_block_bytes);
  settings->chunk_bytes = size_value(cct, "swimstore_chunk_size");
  const uint64_t cubes = cct->_conf.get_val<uint64_t>("swimstore_cubes");
  VTKV_RETURN_IF_ERROR(check_range("swimstore_cubes", cubes, 1, 64));
  if (!std::has_single_bit(cubes)) {
    return Status::invalid_argument(fmt::format("option swimstore_cubes is {}: it must be a power of two", cubes));
  }
  settings->cubes = static_cast<unsigned>(cubes);
  settings->metadata_path = cct->_conf.get_val<std::string>("swimstore_metadata_path");
  settings->memtable_bytes = size_value(cct, "swimstore_memtable_size");
  settings->compress_metadata = cct->_conf.get_val<bool>("swimstore_compress_metadata");
  const uint64_t io_depth = cct->_conf.get_val<uint64_t>("swimstore_io_depth");
  VTKV_RETURN_IF_ERROR(check_range("swimstore_io_depth", io_depth, 1, 4096));
  settings->io_depth = static_cast<unsigned>(io_depth);
  const uint64_t callback_threads = cct->_conf.get_val<uint64_t>("swimstore_callback_threads");
  VTKV_RETURN_IF_ERROR(check_range("swimstore_callback_threads", callback_threads, 0, 64));
  settings->callback_threads = static_cast<unsigned>(callback_threads);
  settings->prime_slot_bytes_max = size_value(cct, "swimstore_prime_slot_size_max");
  settings->primed_ahead_bytes = size_value(cct, "swimstore_primed_ahead_size");
  settings->reserve_bytes = size_value(cct, "swimstore_reserve_size");
  settings->allow_unproven_file_system = cct->_conf.get_val<bool>("swimstore_allow_unproven_file_system");
  VTKV_RETURN_IF_ERROR(
      parse_flush_mode(cct->_conf.get_val<std::string>("swimstore_flush_mode"), &settings->flush_mode));
  return settings->validate();
}

Status Settings::validate() const {
  VTKV_RETURN_IF_ERROR(check_layout("swimstore_log_segment_size", geometry.log_segment_bytes, 64 * kKiB, 4 * kGiB));
  VTKV_RETURN_IF_ERROR(check_layout("swimstore_zone_size", geometry.zone_bytes, 64 * kKiB, kGiB));
  VTKV_RETURN_IF_ERROR(check_layout("swimstore_chunk_size", chunk_bytes, kSlotBytesMax, 4 * kGiB));
  if (!std::has_single_bit(chunk_bytes)) {
    return Status::invalid_argument(
        fmt::format("option swimstore_chunk_size is {}: it must be a power of two", chunk_bytes));
  }
  if (geometry.zone_bytes < 4 * uint64_t{geometry.block_bytes}) {
    return Status::invalid_argument(
        fmt::format("option swimstore_zone_size is {}: it must hold at least four blocks of "
                    "swimstore_tree_block_size ({})",
                    geometry.zone_bytes, geometry.block_bytes));
  }
  VTKV_RETURN_IF_ERROR(check_range("swimstore_memtable_size", memtable_bytes, 64 * kKiB, 4 * kGiB));
  VTKV_RETURN_IF_ERROR(check_range("swimstore_prime_slot_size_max", prime_slot_bytes_max, 0, kSlotBytesMax));
  VTKV_RETURN_IF_ERROR(check_range("swimstore_primed_ahead_size", primed_ahead_bytes, 0, 64 * kGiB));
  return check_range("swimstore_reserve_size", reserve_bytes, 0, 64 * kGiB);
}

Status Settings::choose_single_flush(const vtkv::FileSystemInfo& host, bool* single_flush) const {
  *single_flush = host.single_flush && flush_mode != FlushMode::per_file;
  if (flush_mode == FlushMode::single && !host.single_flush) {
    return Status::invalid_argument(
        fmt::format("option swimstore_flush_mode is single, but on the {} at {} one flush is not known to cover "
                    "all files: use auto or per-file",
                    vtkv::to_string(host.kind), host.mount_point));
  }
  return {};
}

CubeOptions Settings::cube_options(bool single_flush) const {
  CubeOptions options;
  options.database.geometry = geometry;
  options.database.memtable_bytes = memtable_bytes;
  options.database.compress_blocks = compress_metadata;
  options.database.io_depth = io_depth;
  options.database.single_flush = single_flush;
  options.containers.chunk_bytes = chunk_bytes;
  unsigned primed_class = 0;
  while (primed_class + 1 < kSizeClasses && slot_bytes(primed_class + 1) <= prime_slot_bytes_max) {
    ++primed_class;
  }
  options.containers.primed_class_max = primed_class;
  options.containers.primed_ahead_bytes = prime_slot_bytes_max < kBlockBytes ? 0 : primed_ahead_bytes;
  options.containers.reserve_bytes = reserve_bytes;
  return options;
}

}  // namespace swimstore
