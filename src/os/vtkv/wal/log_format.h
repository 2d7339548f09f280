// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes of the log: segment headers and records. Little endian.
//
// A segment is one file of fixed size. Its first block (kLogBlockBytes) holds the segment header; records
// follow, each starting on a block boundary and padded with zeros to the next.
//
// segment header, version 3
//   OFFSET  SIZE  FIELD
//        0     8  magic            "vtkvlseg"
//        8     4  version          3
//       12     4  flags            SegmentFlags; 0 in version 1
//       16    16  uuid             of the database
//       32     8  segment_id       names the file
//       40     8  epoch            grows with every use of any segment; 0: never used
//       48     8  segment_bytes    size of the file
//       56     4  reserved         0
//       60     4  header_crc       crc32c of bytes 0..59
//
// record header, version 1
//   OFFSET  SIZE  FIELD
//        0     4  magic            "vrec"
//        4     2  version          1
//        6     2  flags            RecordFlags
//        8    16  uuid             of the database
//       24     8  epoch            of the segment when the record was written
//       32     8  first_sequence
//       40     4  sequence_count   at least 1; the last sequence is first_sequence + sequence_count - 1
//       44     4  batch_count
//       48     4  body_bytes       follows the header directly
//       52     4  previous_crc     header_crc of the record before it in the history; 0 for the very first
//       56     8  nonce            random: two records that differ in nothing else differ in header_crc
//       64     8  durable_seq      everything at or below it was durable when the record was formed
//       72     4  body_crc         crc32c of the body
//       76     4  header_crc       crc32c of bytes 0..75
//
// A batch may be cut into fragments, each alone in a record. All but the last have kContinues, and lie in segments of
// version 3. Recovery takes all of them or none; a durable_seq is never that of a record with kContinues.
//
// body: when flags has kCrossCube, first
//        0     8  transaction_id
//        8     4  participant_count
//       12     4  reserved         0
//       16  16*n  participants     {u32 cube, u32 reserved, u64 sequence}
// then batch_count times
//        0     4  sequence_count
//        4     4  encoded_bytes
//        8     n  WriteBatch::encoded()
//
// History: version 1 is the first. Segment header, version 2: flags; version 1 is read as having none. Version 3:
// records may have kContinues.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vtkv/env/uuid.h"
#include "vtkv/mem/value_pointer.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

static_assert(std::endian::native == std::endian::little, "the log is read and written as it lies in memory");

inline constexpr size_t kLogBlockBytes = 4096;
inline constexpr uint64_t kSegmentMagic = 0x6765736c766b7476ull;  // "vtkvlseg"
inline constexpr uint32_t kRecordMagic = 0x63657276u;             // "vrec"
inline constexpr uint32_t kSegmentVersion = 3;
inline constexpr uint32_t kSegmentVersionOldest = 1;  // that is read
inline constexpr uint16_t kRecordVersion = 1;
inline constexpr uint32_t kMaxOperationBytes = 1u << 30;  // of a batch, encoded
// Sequences, epochs and run ids count up; at a million a second it takes a thousand years to get here. What is found
// on a disk may not be greater, so that nothing that counts on from it overflows (the tree keeps 56 bits).
inline constexpr uint64_t kCountMax = uint64_t{1} << 55;

enum SegmentFlags : uint32_t {
  // Blocks of the file may never have been written: a record in it is durable only after a sync of this file.
  kUnprimedSegment = 1 << 0,
};

enum RecordFlags : uint16_t {
  kRecoveryRecord = 1 << 0,  // ends a recovery: no data
  kCrossCube = 1 << 1,       // the body starts with a transaction id and its participants
  kContinues = 1 << 2,       // its only batch goes on in the next record
};

struct segment_header_t {
  uint64_t magic = kSegmentMagic;
  uint32_t version = kSegmentVersion;
  uint32_t flags = 0;
  Uuid uuid{};
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t segment_bytes = 0;
  uint32_t reserved = 0;
  uint32_t header_crc = 0;
};
static_assert(sizeof(segment_header_t) == 64);
static_assert(offsetof(segment_header_t, flags) == 12);
static_assert(offsetof(segment_header_t, uuid) == 16);
static_assert(offsetof(segment_header_t, segment_bytes) == 48);
static_assert(offsetof(segment_header_t, header_crc) == 60);

struct record_header_t {
  uint32_t magic = kRecordMagic;
  uint16_t version = kRecordVersion;
  uint16_t flags = 0;
  Uuid uuid{};
  uint64_t epoch = 0;
  uint64_t first_sequence = 0;
  uint32_t sequence_count = 0;
  uint32_t batch_count = 0;
  uint32_t body_bytes = 0;
  uint32_t previous_crc = 0;
  uint64_t nonce = 0;
  uint64_t durable_seq = 0;
  uint32_t body_crc = 0;
  uint32_t header_crc = 0;

  SequenceNumber last_sequence() const { return first_sequence + sequence_count - 1; }
  // Blocks that header and body take.
  uint64_t padded_bytes() const {
    return (sizeof(record_header_t) + uint64_t{body_bytes} + kLogBlockBytes - 1) / kLogBlockBytes * kLogBlockBytes;
  }
};
static_assert(sizeof(record_header_t) == 80);
static_assert(offsetof(record_header_t, uuid) == 8);
static_assert(offsetof(record_header_t, epoch) == 24);
static_assert(offsetof(record_header_t, previous_crc) == 52);
static_assert(offsetof(record_header_t, durable_seq) == 64);
static_assert(offsetof(record_header_t, header_crc) == 76);

struct batch_frame_t {
  uint32_t sequence_count = 0;
  uint32_t encoded_bytes = 0;
};
static_assert(sizeof(batch_frame_t) == 8);

// Fill in the checksum of an otherwise complete header.
void seal(segment_header_t* header);
void seal(record_header_t* header, std::string_view body);

enum class HeaderState {
  valid,
  blank,    // all zeros: never written
  foreign,  // another database's, or of another version
  damaged,  // the checksum does not match
};

// `block` holds at least the header's bytes. *header is set when the result is valid or foreign.
HeaderState decode_segment_header(std::string_view block, const Uuid& uuid, segment_header_t* header);
// True when `bytes` starts with a record header of this database whose checksum and fields hold together.
// Whether the body fits what follows is the caller's to check.
bool decode_record_header(std::string_view bytes, const Uuid& uuid, record_header_t* header);

// Visits each batch of a record's body, in order. `body_address`: where the body lies; `address`: where the batch does.
// Code::corruption when the frames contradict the header.
class BatchVisitor {
 public:
  virtual ~BatchVisitor() = default;
  virtual Status batch(SequenceNumber first_sequence, uint32_t sequence_count, std::string_view encoded,
                       const LogAddress& address) = 0;
};
Status for_each_batch(const record_header_t& header, std::string_view body, const LogAddress& body_address,
                      BatchVisitor& visitor);

}  // namespace vtkv
