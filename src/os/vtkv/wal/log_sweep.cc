// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_sweep.h"

#include <algorithm>
#include <cstring>

#include "vtkv/env/read_retries.h"
#include "vtkv/util/crc32c.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {

uint64_t round_down(uint64_t bytes) { return bytes / kLogBlockBytes * kLogBlockBytes; }
uint64_t round_up(uint64_t bytes) { return round_down(bytes + kLogBlockBytes - 1); }

}  // namespace

FileWindow::FileWindow(File* file, uint64_t file_bytes, uint64_t read_bytes, UnreadableBlocks* unreadable)
    : m_file(file),
      m_file_bytes(file_bytes),
      m_read_bytes(std::max<uint64_t>(round_up(read_bytes), kLogBlockBytes)),
      m_unreadable(unreadable) {}

Status FileWindow::view(uint64_t offset, uint64_t length, std::string_view* bytes) {
  if (offset < m_start || offset + length > m_start + m_length) {
    const uint64_t start = round_down(offset);
    const uint64_t wanted = std::max(round_up(offset + length) - start, m_read_bytes);
    m_length = 0;
    const uint64_t available = std::min(wanted, m_file_bytes - start);
    m_buffer.reserve(available);
    if (const Status status = read(start, available, m_buffer.data()); !status.ok()) {
      if (!m_unreadable) {
        return status;
      }
      read_blocks(start, available);
    }
    m_start = start;
    m_length = available;
  }
  *bytes = {m_buffer.data() + (offset - m_start), length};
  return Status();
}

bool FileWindow::lacks(uint64_t offset, uint64_t length) const {
  if (!m_unreadable) {
    return false;
  }
  const auto first = m_unreadable->lower_bound(round_down(offset));
  return first != m_unreadable->end() && first->first < offset + length;
}

Status FileWindow::read(uint64_t offset, uint64_t length, char* destination) {
  return read_with_retries([&] { return m_file->read(offset, length, destination); });
}

void FileWindow::read_blocks(uint64_t start, uint64_t length) {
  for (uint64_t at = 0; at < length; at += kLogBlockBytes) {
    if (const Status status = read(start + at, kLogBlockBytes, m_buffer.data() + at); !status.ok()) {
      std::memset(m_buffer.data() + at, 0, kLogBlockBytes);
      m_unreadable->emplace(start + at, status.message());
    }
  }
}

namespace {

// A record of a later version, of this database and this use of the segment, whose checksum matches.
bool is_newer(std::string_view bytes, const Uuid& uuid, uint64_t epoch) {
  record_header_t found;
  std::memcpy(&found, bytes.data(), sizeof(found));
  return found.magic == kRecordMagic && found.version > kRecordVersion && found.uuid == uuid && found.epoch == epoch &&
         found.header_crc == crc32c(bytes.data(), offsetof(record_header_t, header_crc));
}

struct Read {
  FoundRecord record;
  bool is_whole = false;  // header and body match their checksums
  bool may_be_misread = false;
};

// What lies at `offset`.
Status read_record(FileWindow& window, LogSegment* segment, const Uuid& uuid, uint64_t offset, Read* read,
                   uint64_t* greatest_epoch) {
  std::string_view bytes;
  FoundRecord& found = read->record;
  VTKV_RETURN_IF_ERROR(window.view(offset, kLogBlockBytes, &bytes));
  read->is_whole = read->may_be_misread = false;
  if (!decode_record_header(bytes, uuid, &found.header)) {
    return !is_newer(bytes, uuid, segment->epoch)
               ? Status()
               : Status::unsupported(segment->path + ", record at offset " + std::to_string(offset) +
                                     ": written by a newer version; use that version");
  }
  *greatest_epoch = std::max(*greatest_epoch, found.header.epoch);
  if (found.header.padded_bytes() <= segment->bytes - offset) {
    VTKV_RETURN_IF_ERROR(window.view(offset, sizeof(record_header_t) + found.header.body_bytes, &bytes));
    bytes.remove_prefix(sizeof(record_header_t));
    read->is_whole = crc32c(bytes) == found.header.body_crc || mutated(Mutation::body_crc_not_checked);
    found.segment = segment;
    found.offset = offset;
    read->may_be_misread = !read->is_whole && !window.lacks(offset, sizeof(record_header_t) + found.header.body_bytes);
  }
  return {};
}

}  // namespace

Status sweep_segment(LogSegment* segment, const Uuid& uuid, SegmentRecords* records, uint64_t* greatest_epoch,
                     UnreadableBlocks* unreadable) {
  FileWindow window(segment->file.get(), segment->bytes, kLogReadBytes, unreadable);
  for (uint64_t offset = kLogBlockBytes; offset + kLogBlockBytes <= segment->bytes;) {
    Read read;
    for (int tries = 0; tries == 0 || (tries < kReadTries && read.may_be_misread); ++tries) {
      if (tries > 0) {
        window.forget();
      }
      VTKV_RETURN_IF_ERROR(read_record(window, segment, uuid, offset, &read, greatest_epoch));
    }
    if (read.is_whole) {
      records->emplace(offset, read.record);
    }
    offset += read.is_whole ? read.record.header.padded_bytes() : kLogBlockBytes;
  }
  return Status();
}

Status look_again(LogSegment* segment, const Uuid& uuid, uint64_t offset, SegmentRecords* records,
                  uint64_t* greatest_epoch) {
  FileWindow window(segment->file.get(), segment->bytes, kLogBlockBytes);
  Read read;
  for (int tries = 1; tries < kReadTries && !read.is_whole; ++tries) {
    window.forget();
    VTKV_RETURN_IF_ERROR(read_record(window, segment, uuid, offset, &read, greatest_epoch));
  }
  if (read.is_whole) {
    records->emplace(offset, read.record);
  }
  return {};
}

}  // namespace vtkv
