// SPDX-License-Identifier: LGPL-2.1-or-later
// Records that no healthy database writes, under good checksums: for tests of what recovery makes of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vtkv/tree/manifest.h"
#include "vtkv/wal/log_position.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

struct RawRecord {
  uint16_t version = kRecordVersion;
  uint16_t flags = 0;
  uint32_t sequence_count = 1;
  uint32_t batch_count = 1;
  SequenceNumber durable_seq = 0;
  uint32_t more_body_bytes = 0;  // claimed by the header, not there
  std::string body;
};

// A record of one batch. `sequence_count`: what it claims to have.
RawRecord raw_record(const WriteBatch& batch, uint32_t sequence_count = 1);
// One whose only batch is these bytes.
RawRecord raw_record(std::string_view encoded, uint32_t sequence_count = 1);

// Writes it to `segment` at `offset`, as what follows `after`; returns the position behind it.
LogPosition write_raw(LogSegment* segment, uint64_t offset, const Uuid& uuid, const LogPosition& after,
                      const RawRecord& record);

// The log of a database that is not open, and where it ends.
class ClosedLog {
 public:
  ClosedLog(Env* env, const std::string& directory);
  // Behind the last record, in the same segment.
  void append(const RawRecord& record);
  LogSegment* last_segment() const { return m_pool->find(m_end.segment_id); }
  SegmentPool* pool() const { return m_pool.get(); }
  const Uuid& uuid() const { return m_newest.uuid; }
  const LogPosition& end() const { return m_end; }

 private:
  Checkpoint m_newest;
  std::unique_ptr<SegmentPool> m_pool;
  LogPosition m_end;
};

}  // namespace vtkv
