// SPDX-License-Identifier: LGPL-2.1-or-later
// The manifest: one pre-written file of two copies of equal size, each a whole checkpoint, written in turn
// (copy number = epoch mod 2). Format version 1; version 2, by which an older program is told that it cannot judge it,
// as long as there are features. Integers are little endian.
//
//   OFFSET  SIZE  FIELD
//        0     8  magic "vtkvmnft"
//        8     4  crc32c of the bytes from 12 up to the length
//       12     4  format version: 1 or 2
//       16     4  length: bytes of header, records and features
//       20     4  number of run records
//       24     8  epoch: 1, 2, …; the valid copy with the greatest one is the state
//       32    16  database uuid
//       48     4  geometry: target size of a block
//       52     4  geometry: log segments made at creation
//       56     8  geometry: log segment size
//       64     8  geometry: zone size
//       72     4  log position: header checksum of the record
//       76     4  number of segment records
//       80     8  log position: sequence
//       88     8  log position: segment id
//       96     8  log position: epoch
//      104     8  log position: end offset
//      112     8  next run id
//      120     4  bytes of the features (version 1: 0)
//      124     4  zeros
//      128    48  run record, newest run first; each:
//              0     8  run id
//              8     8  id of the span that holds the descriptor
//             16     8  its offset in the zone file
//             24     4  its length in units of 4096
//             28     4  level
//             32    16  zeros
//      ...    40  segment record, of each log segment with values that the runs point to:
//              0     8  segment id
//              8     8  its epoch
//             16     8  pointers in the runs (may be 0)
//             24     8  bytes of the values that they point to
//             32     8  where the last value that a run ever pointed to ends
//      ...   ...  features (util/features.h)
//
// The first 20 bytes keep their meaning in every version to come, so that a copy of a later version is
// told from a damaged one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vtkv {

inline constexpr char kManifestMagic[8] = {'v', 't', 'k', 'v', 'm', 'n', 'f', 't'};
inline constexpr uint32_t kManifestVersion = 1;
inline constexpr uint32_t kManifestVersionWithFeatures = 2;

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
  uint8_t zeros[16];
};
static_assert(sizeof(manifest_run_t) == 48);
static_assert(offsetof(manifest_run_t, units) == 24);

struct manifest_segment_t {
  uint64_t segment_id;
  uint64_t epoch;
  uint64_t entries;
  uint64_t bytes;
  uint64_t end;
};
static_assert(sizeof(manifest_segment_t) == 40);

}  // namespace vtkv
