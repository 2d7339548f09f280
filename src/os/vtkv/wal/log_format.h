// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes of the log, segment headers and records: doc/on_disk_format.md, "Segment header", "Record", "Batch in a
// record".
//
// A batch may be cut into fragments, each alone in a record. All but the last have kContinues, and lie in segments of
// version 3. Recovery takes all of them or none; a durable_seq is never that of a record with kContinues.
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
