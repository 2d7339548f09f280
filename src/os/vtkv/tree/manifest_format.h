// SPDX-License-Identifier: LGPL-2.1-or-later
// The manifest: one pre-written file of two copies of equal size, each a whole checkpoint, written in turn
// (copy number = epoch mod 2): doc/on_disk_format.md, "Manifest", "Run record", "Segment record". Format version 3.
//
// The first 20 bytes keep their meaning in every version to come, so that a copy of a later version is
// told from a damaged one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vtkv {

inline constexpr char kManifestMagic[8] = {'v', 't', 'k', 'v', 'm', 'n', 'f', 't'};
inline constexpr uint32_t kManifestVersion = 3;

struct manifest_header_t {
  char magic[8];
  uint32_t crc32c;
  uint32_t version;
  uint32_t length;
  uint32_t runs;
  uint64_t epoch;
  uint8_t uuid[16];
  uint32_t block_bytes;
  uint32_t initial_log_segments;
  uint64_t log_segment_bytes;
  uint64_t zone_bytes;
  uint32_t log_header_checksum;
  uint32_t segments;
  uint64_t log_sequence;
  uint64_t log_segment_id;
  uint64_t log_epoch;
  uint64_t log_end_offset;
  uint64_t next_run_id;
  uint32_t feature_bytes;
  uint32_t zeros_124;
};
static_assert(sizeof(manifest_header_t) == 128);
static_assert(offsetof(manifest_header_t, version) == 12);
static_assert(offsetof(manifest_header_t, epoch) == 24);
static_assert(offsetof(manifest_header_t, zone_bytes) == 64);
static_assert(offsetof(manifest_header_t, log_end_offset) == 104);
static_assert(offsetof(manifest_header_t, feature_bytes) == 120);

struct manifest_run_t {
  uint64_t run_id;
  uint64_t span_id;
  uint64_t offset;
  uint32_t units;
  uint32_t level;
  uint64_t sorted_run_id;
  uint8_t zeros[8];
};
static_assert(sizeof(manifest_run_t) == 48);
static_assert(offsetof(manifest_run_t, units) == 24);
static_assert(offsetof(manifest_run_t, sorted_run_id) == 32);

struct manifest_segment_t {
  uint64_t segment_id;
  uint64_t epoch;
  uint64_t entries;
  uint64_t bytes;
  uint64_t end;
};
static_assert(sizeof(manifest_segment_t) == 40);

}  // namespace vtkv
