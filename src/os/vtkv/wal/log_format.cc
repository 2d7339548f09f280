// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_format.h"

#include <algorithm>
#include <cstring>

#include "vtkv/util/crc32c.h"

namespace vtkv {

void seal(segment_header_t* header) {
  header->header_crc = crc32c(reinterpret_cast<const char*>(header), offsetof(segment_header_t, header_crc));
}

void seal(record_header_t* header, std::string_view body) {
  header->body_bytes = static_cast<uint32_t>(body.size());
  header->body_crc = crc32c(body.data(), body.size());
  header->header_crc = crc32c(reinterpret_cast<const char*>(header), offsetof(record_header_t, header_crc));
}

HeaderState decode_segment_header(std::string_view block, const Uuid& uuid, segment_header_t* header) {
  if (block.size() < sizeof(segment_header_t)) {
    return HeaderState::damaged;
  }
  segment_header_t found;
  std::memcpy(&found, block.data(), sizeof(found));
  const auto* bytes = block.data();
  if (std::all_of(bytes, bytes + sizeof(found), [](char byte) { return byte == 0; })) {
    return HeaderState::blank;
  }
  const uint32_t crc = crc32c(bytes, offsetof(segment_header_t, header_crc));
  if (found.magic != kSegmentMagic || found.header_crc != crc) {
    return HeaderState::damaged;
  }
  if (found.epoch > kCountMax) {
    return HeaderState::damaged;
  }
  if (found.version == 1) {
    found.flags = 0;
  }
  *header = found;
  const bool known = found.version >= kSegmentVersionOldest && found.version <= kSegmentVersion &&
                     (found.flags & ~kUnprimedSegment) == 0;
  if (!known || found.uuid != uuid) {
    return HeaderState::foreign;
  }
  return HeaderState::valid;
}

bool decode_record_header(std::string_view bytes, const Uuid& uuid, record_header_t* header) {
  if (bytes.size() < sizeof(record_header_t)) {
    return false;
  }
  record_header_t found;
  std::memcpy(&found, bytes.data(), sizeof(found));
  if (found.magic != kRecordMagic || found.version != kRecordVersion || found.uuid != uuid) {
    return false;
  }
  if (found.header_crc != crc32c(bytes.data(), offsetof(record_header_t, header_crc))) {
    return false;
  }
  if (found.sequence_count == 0 || found.first_sequence == 0 || found.durable_seq >= found.first_sequence ||
      found.first_sequence > kCountMax || found.epoch > kCountMax) {
    return false;
  }
  *header = found;
  return true;
}

Status for_each_batch(const record_header_t& header, std::string_view body, const LogAddress& body_address,
                      BatchVisitor& visitor) {
  const char* const start = body.data();
  if (header.flags & kCrossCube) {
    return Status::unsupported("log record with participants in other cubes: written by a newer version");
  }
  SequenceNumber next = header.first_sequence;
  for (uint32_t i = 0; i < header.batch_count; ++i) {
    batch_frame_t frame;
    if (body.size() < sizeof(frame)) {
      return Status::corruption("log record: its batches are longer than its body");
    }
    std::memcpy(&frame, body.data(), sizeof(frame));
    body.remove_prefix(sizeof(frame));
    if (frame.encoded_bytes > body.size() || frame.sequence_count == 0 ||
        frame.sequence_count > header.last_sequence() - next + 1) {
      return Status::corruption("log record: a batch is longer than its record");
    }
    const LogAddress address{body_address.segment_id, body_address.epoch,
                             body_address.offset + static_cast<uint64_t>(body.data() - start)};
    VTKV_RETURN_IF_ERROR(visitor.batch(next, frame.sequence_count, body.substr(0, frame.encoded_bytes), address));
    next += frame.sequence_count;
    body.remove_prefix(frame.encoded_bytes);
  }
  if (!body.empty() || next != header.last_sequence() + 1) {
    return Status::corruption("log record: its batches do not fill it");
  }
  return Status();
}

}  // namespace vtkv
