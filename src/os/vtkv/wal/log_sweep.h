// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads the whole log once and finds every record of this database whose checksums hold, wherever it
// lies: the raw material of recovery.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/wal/log_format.h"
#include "vtkv/wal/log_position.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

struct FoundRecord {
  record_header_t header;
  LogSegment* segment = nullptr;
  uint64_t offset = 0;

  LogPosition position_after() const {
    return {header.last_sequence(), segment->id, segment->epoch, offset + header.padded_bytes(), header.header_crc};
  }
};

// Blocks that cannot be read, by offset, with the reason.
using UnreadableBlocks = std::map<uint64_t, std::string>;

// What is read of the log at once.
inline constexpr uint64_t kLogReadBytes = 1 << 20;

// Reads a file in large slices and shows what is asked of it. A read that fails is tried again (kReadTries).
class FileWindow {
 public:
  // `unreadable`: blocks that cannot be read are zeros, and added there. Null: they are an error.
  FileWindow(File* file, uint64_t file_bytes, uint64_t read_bytes, UnreadableBlocks* unreadable = nullptr);
  // `length` bytes at `offset`; valid until the next call. REQUIRES: within the file.
  Status view(uint64_t offset, uint64_t length, std::string_view* bytes);
  // What is shown next is read anew: what was shown does not match its checksum.
  void forget() { m_length = 0; }
  // A block of the range could not be read, and is zeros.
  bool lacks(uint64_t offset, uint64_t length) const;

 private:
  // The slice of the file, one block after the other.
  void read_blocks(uint64_t start, uint64_t length);
  Status read(uint64_t offset, uint64_t length, char* destination);

  File* const m_file;
  const uint64_t m_file_bytes;
  const uint64_t m_read_bytes;
  UnreadableBlocks* const m_unreadable;
  AlignedBuffer m_buffer;
  uint64_t m_start = 0;
  uint64_t m_length = 0;
};

// The records of one segment by offset.
using SegmentRecords = std::map<uint64_t, FoundRecord>;

// Code::unsupported where a newer program wrote a record: it is not passed over as one that did not arrive.
// *greatest_epoch is raised to that of any record header met, also of one whose body did not arrive.
// `unreadable`: as FileWindow. A record whose header alone holds is read again: that it did not arrive is for no single
// read to say.
Status sweep_segment(LogSegment* segment, const Uuid& uuid, SegmentRecords* records, uint64_t* greatest_epoch,
                     UnreadableBlocks* unreadable = nullptr);

// What a sweep took for no record at `offset` it may have misread: up to kReadTries in all. If there is one after all,
// `records` has it. Errors as sweep_segment.
Status look_again(LogSegment* segment, const Uuid& uuid, uint64_t offset, SegmentRecords* records,
                  uint64_t* greatest_epoch);

}  // namespace vtkv
