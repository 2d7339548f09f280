// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_writer.h"

#include <algorithm>
#include <cstring>

#include "vtkv/util/invariants.h"

namespace vtkv {

uint64_t LogWriter::room() const {
  const LogSegment* segment = m_pool->find(m_position.segment_id);
  const uint64_t left = segment->bytes - m_position.end_offset;
  return left > sizeof(record_header_t) ? left - sizeof(record_header_t) : 0;
}

uint64_t LogWriter::segment_room() const { return m_pool->segment_bytes() - kLogBlockBytes - sizeof(record_header_t); }

Status LogWriter::move_to_next_segment(uint64_t record_bytes, bool for_recovery) {
  LogSegment* segment = nullptr;
  VTKV_RETURN_IF_ERROR(m_pool->take(kLogBlockBytes + record_bytes, for_recovery, &segment));
  m_position.segment_id = segment->id;
  m_position.epoch = segment->epoch;
  m_position.end_offset = kLogBlockBytes;
  return Status();
}

Status LogWriter::form(const std::vector<BatchView>& batches, SequenceNumber durable_seq, uint16_t flags,
                       FormedRecord* record, char* in_place) {
  VTKV_ASSERT(durable_seq <= m_position.sequence);
  record_header_t header;
  header.flags = flags;
  header.uuid = m_uuid;
  header.first_sequence = m_position.sequence + 1;
  header.batch_count = static_cast<uint32_t>(batches.size());
  header.previous_crc = m_position.header_checksum;
  header.nonce = m_env->random_u64();
  header.durable_seq = durable_seq;
  size_t body_bytes = 0;
  for (const BatchView& batch : batches) {
    body_bytes += sizeof(batch_frame_t) + batch.encoded.size();
    header.sequence_count += batch.sequence_count;
  }
  header.body_bytes = static_cast<uint32_t>(body_bytes);

  const uint64_t record_bytes = header.padded_bytes();
  LogSegment* segment = m_pool->find(m_position.segment_id);
  // A program that does not know of fragments has to refuse the segment, by its header.
  const bool takes_fragments = segment->header_version >= kSegmentVersion;
  const bool new_segment = ((flags & kContinues) && !takes_fragments) ||
                           m_position.end_offset + record_bytes > segment->bytes ||
                           (!segment->primed.load() && m_pool->primed_awaits());
  if (new_segment) {
    VTKV_RETURN_IF_ERROR(move_to_next_segment(record_bytes, flags & kRecoveryRecord));
    segment = m_pool->find(m_position.segment_id);
  }
  header.epoch = segment->epoch;

  const size_t prefix = new_segment ? kLogBlockBytes : 0;
  record->write_bytes = prefix + record_bytes;
  if (!in_place) {
    record->buffer.reserve(record->write_bytes);
  }
  char* const start = in_place ? in_place + kLogBlockBytes : record->buffer.data() + prefix;
  record->data = start - prefix;
  char* out = start + sizeof(header);
  for (const BatchView& batch : batches) {
    const batch_frame_t frame{batch.sequence_count, static_cast<uint32_t>(batch.encoded.size())};
    if (batch.address) {
      *batch.address = {segment->id, segment->epoch,
                        m_position.end_offset + static_cast<uint64_t>(out - start) + sizeof(frame)};
    }
    std::memcpy(out, &frame, sizeof(frame));
    if (!in_place) {
      std::copy(batch.encoded.begin(), batch.encoded.end(), out + sizeof(frame));  // an empty one may have no address
    }
    out += sizeof(frame) + batch.encoded.size();
  }
  std::memset(out, 0, static_cast<size_t>(start + record_bytes - out));
  seal(&header, {start + sizeof(header), body_bytes});
  std::memcpy(start, &header, sizeof(header));
  if (new_segment) {
    const std::string block = m_pool->header_block(*segment);
    std::memcpy(start - prefix, block.data(), block.size());
  }

  record->segment = segment;
  record->write_offset = m_position.end_offset - prefix;
  record->durable_seq = durable_seq;
  m_position.sequence = header.last_sequence();
  m_position.end_offset += record_bytes;
  m_position.header_checksum = header.header_crc;
  record->position = m_position;
  if (record->write_offset <= segment->written_bytes) {  // else something before it was never written
    segment->written_bytes = std::max(segment->written_bytes, m_position.end_offset);
  }
  return Status();
}

}  // namespace vtkv
