// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/raw_log.h"

#include <cstring>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/invariants.h"
#include "vtkv/wal/log_recovery.h"

namespace vtkv {

RawRecord raw_record(std::string_view encoded, uint32_t sequence_count) {
  const batch_frame_t frame{sequence_count, static_cast<uint32_t>(encoded.size())};
  RawRecord record;
  record.sequence_count = sequence_count;
  record.body.assign(reinterpret_cast<const char*>(&frame), sizeof(frame));
  record.body += encoded;
  return record;
}

RawRecord raw_record(const WriteBatch& batch, uint32_t sequence_count) {
  return raw_record(batch.encoded(), sequence_count);
}

LogPosition write_raw(LogSegment* segment, uint64_t offset, const Uuid& uuid, const LogPosition& after,
                      const RawRecord& record) {
  record_header_t header;
  header.version = record.version;
  header.flags = record.flags;
  header.uuid = uuid;
  header.epoch = segment->epoch;
  header.first_sequence = after.sequence + 1;
  header.sequence_count = record.sequence_count;
  header.batch_count = record.batch_count;
  header.previous_crc = after.header_checksum;
  header.nonce = offset + segment->id;
  header.durable_seq = record.durable_seq;
  seal(&header, record.body);
  const uint64_t bytes = header.padded_bytes();
  header.body_bytes += record.more_body_bytes;
  header.header_crc = crc32c(reinterpret_cast<const char*>(&header), offsetof(record_header_t, header_crc));
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 0, bytes);
  std::memcpy(buffer.data(), &header, sizeof(header));
  std::memcpy(buffer.data() + sizeof(header), record.body.data(), record.body.size());
  const bool written = segment->file->write(offset, buffer.data(), bytes).ok() && segment->file->sync().ok();
  VTKV_ASSERT(written);
  return {header.last_sequence(), segment->id, segment->epoch, offset + bytes, header.header_crc};
}

ClosedLog::ClosedLog(Env* env, const std::string& directory) {
  std::unique_ptr<Manifest> manifest;
  Checkpoint older;
  const Status opened = Manifest::open(env, directory, &manifest, &m_newest, &older);
  VTKV_ASSERT(opened.ok());
  m_pool = std::make_unique<SegmentPool>(env, directory + "/log", m_newest.geometry, m_newest.uuid);
  const Status loaded = m_pool->load();
  VTKV_ASSERT(loaded.ok());
  const Options options;
  LogRecovery recovery(m_pool.get(), m_newest.uuid, options, m_newest.position, {});
  const Status read = recovery.read_chain();
  VTKV_ASSERT(read.ok());
  m_end = recovery.recovered_end();
}

void ClosedLog::append(const RawRecord& record) {
  m_end = write_raw(last_segment(), m_end.end_offset, uuid(), m_end, record);
}

}  // namespace vtkv
