// SPDX-License-Identifier: LGPL-2.1-or-later
// Forms log records: where each goes, what it says, and the bytes of its one write.
//
// Not thread-safe: one writer (the recovery, then the commit worker).
#pragma once

#include <string_view>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/mem/value_pointer.h"
#include "vtkv/wal/log_format.h"
#include "vtkv/wal/log_position.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

struct BatchView {
  uint32_t sequence_count = 0;
  std::string_view encoded;
  LogAddress* address = nullptr;  // form() says here where `encoded` lies
};

// A record ready to be written. Reusable: its buffer keeps its capacity.
struct FormedRecord {
  AlignedBuffer buffer;
  const char* data = nullptr;  // in the buffer, or in the caller's
  size_t write_bytes = 0;
  uint64_t write_offset = 0;  // in segment->file; 0 when the segment's header goes along
  LogSegment* segment = nullptr;
  LogPosition position;  // after the record
  SequenceNumber durable_seq = 0;
};

class LogWriter {
 public:
  LogWriter(Env* env, SegmentPool* pool, const Uuid& uuid) : m_env(env), m_pool(pool), m_uuid(uuid) {}

  // The next record follows this one.
  void start_after(const LogPosition& position) { m_position = position; }
  const LogPosition& position() const { return m_position; }

  // Forms the record of `batches`, which continue the history. A segment that has no room is left for
  // the next one; a record longer than a segment gets one of its own size.
  // With `in_place` there is one batch, and it lies where it has to: behind a block for a segment's header, a
  // record header and a frame, in a buffer of whole blocks that starts there.
  // `flags` with kContinues: not to a segment that an older program began.
  Status form(const std::vector<BatchView>& batches, SequenceNumber durable_seq, uint16_t flags, FormedRecord* record,
              char* in_place = nullptr);
  // Bytes of batches (frames included) that still fit the current segment.
  uint64_t room() const;
  // The same for a fresh segment of the usual size.
  uint64_t segment_room() const;

 private:
  Status move_to_next_segment(uint64_t record_bytes, bool for_recovery);

  Env* const m_env;
  SegmentPool* const m_pool;
  const Uuid m_uuid;
  LogPosition m_position;
};

}  // namespace vtkv
