// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/object_archive.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr std::string_view kMagic = "SWIMARCH";
constexpr uint32_t kVersionWithSeed = 3;
constexpr size_t kFileHeaderBytes = 16;
constexpr size_t kSeedBytes = 12;  // with its checksum
constexpr size_t kRecordHeaderBytes = 9;
constexpr size_t kLastRecordBytes = kRecordHeaderBytes + 2 * sizeof(uint64_t);
constexpr uint32_t kBodyBytesMax = 1u << 28;
// Of the records at which a search may go on: those that begin an object or a collection, and the last.
constexpr uint32_t kBeginningBytesMax = 1u << 16;
constexpr size_t kSearchBytes = 1u << 20;
constexpr size_t kSectorBytes = 4096;  // what a disk loses at once

std::string file_header(uint32_t version) {
  std::string header(kMagic);
  vtkv::put_fixed32(&header, version);
  vtkv::put_fixed32(&header, vtkv::crc32c(header));
  return header;
}

uint32_t crc32c_of(uint64_t seed) {
  std::string bytes;
  vtkv::put_fixed64(&bytes, seed);
  return vtkv::crc32c(bytes);
}

uint32_t record_crc32c(uint32_t seed_crc32c, std::string_view kind_and_length, std::string_view body) {
  const uint32_t crc32c = vtkv::crc32c_extend(seed_crc32c, kind_and_length.data(), kind_and_length.size());
  return vtkv::crc32c_extend(crc32c, body.data(), body.size());
}

}  // namespace

ArchiveWriter::ArchiveWriter(std::ostream* out, std::string name, uint64_t seed)
    : m_out(*out), m_name(std::move(name)), m_seed(seed) {
  std::string header = file_header(kArchiveVersion);
  vtkv::put_fixed64(&header, m_seed);
  vtkv::put_fixed32(&header, crc32c_of(m_seed));
  m_out << header;
}

Status ArchiveWriter::check() const {
  if (m_out) {
    return {};
  }
  const int error = errno != 0 ? errno : EIO;
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return Status::from_errno(error, fmt::format("{} cannot be written to its end{}", m_name,
                                               is_full ? ": give --out a place with more room" : ""));
}

Status ArchiveWriter::write(ArchiveRecord kind, std::string_view body) {
  if (body.size() > kBodyBytesMax) {
    return Status::unsupported(
        fmt::format("{}: a record of {} bytes is too large for an archive", m_name, body.size()));
  }
  std::string header(1, static_cast<char>(kind));
  vtkv::put_fixed32(&header, static_cast<uint32_t>(body.size()));
  vtkv::put_fixed32(&header, record_crc32c(crc32c_of(m_seed), header, body));
  errno = 0;
  m_out << header << body;
  return check();
}

Status ArchiveWriter::end(uint64_t objects) {
  std::string body;
  vtkv::put_fixed64(&body, objects);
  vtkv::put_fixed64(&body, m_seed);
  VTKV_RETURN_IF_ERROR(write(ArchiveRecord::end, body));
  errno = 0;
  m_out.flush();
  return check();
}

Status ArchiveReader::damaged(std::string_view what) const {
  return Status::corruption(fmt::format("{}: record {} {}", m_name, m_records, what));
}

Status ArchiveReader::open(std::string* note) {
  note->clear();
  if (m_in.seekg(0, std::ios::end)) {
    m_end = m_in.tellg();
  }
  m_in.clear();
  m_in.seekg(0);
  m_in.clear();  // of what cannot be searched
  std::string header(kFileHeaderBytes, '\0');
  m_in.read(header.data(), static_cast<std::streamsize>(header.size()));
  std::string_view cursor(header);
  uint32_t version = 0;
  const bool has_magic = m_in && cursor.starts_with(kMagic);
  if (has_magic) {
    cursor.remove_prefix(kMagic.size());
    vtkv::get_fixed32(&cursor, &version);
    if (header == file_header(version)) {
      VTKV_RETURN_IF_ERROR(check_version(m_name, version, kArchiveVersion));
      if (version < kVersionWithSeed) {
        return {};
      }
      std::string seed(kSeedBytes, '\0');
      m_in.read(seed.data(), static_cast<std::streamsize>(seed.size()));
      m_seed_crc32c = vtkv::crc32c({seed.data(), sizeof(uint64_t)});
      if (m_in && vtkv::decode_fixed32(seed.data() + sizeof(uint64_t)) == m_seed_crc32c) {
        return {};
      }
    }
  }
  if (open_by_last_record() && search(0)) {
    *note = m_name + ": its first bytes are damaged";
    return {};
  }
  return Status::corruption(m_name + (has_magic ? ": its first bytes are damaged"
                                                : ": is no archive that export wrote, or its first bytes are damaged"));
}

bool ArchiveReader::open_by_last_record() {
  std::string record(kLastRecordBytes, '\0');
  const std::streamoff begin = m_end - static_cast<std::streamoff>(record.size());
  if (begin < 0 || read_at(begin, &record) < record.size() || record[0] != static_cast<char>(ArchiveRecord::end)) {
    return false;
  }
  const uint64_t seed = vtkv::decode_fixed64(record.data() + kLastRecordBytes - sizeof(uint64_t));
  m_seed_crc32c = crc32c_of(seed);
  return is_record_at(begin);
}

Status ArchiveReader::read(ArchiveRecord* kind, std::string* body) {
  ++m_records;
  m_begin = m_in.tellg();
  m_length = 0;
  std::string header(kRecordHeaderBytes, '\0');
  m_in.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (!m_in) {
    return damaged(m_in.bad() ? "cannot be read" : "is missing: the file was cut short");
  }
  std::string_view cursor(header);
  cursor.remove_prefix(1);
  uint32_t crc32c = 0;
  vtkv::get_fixed32(&cursor, &m_length);
  vtkv::get_fixed32(&cursor, &crc32c);
  if (m_length > kBodyBytesMax) {
    return damaged("has an impossible length");
  }
  body->resize(m_length);
  m_in.read(body->data(), m_length);
  if (!m_in) {
    return damaged(m_in.bad() ? "cannot be read" : "is cut short");
  }
  if (record_crc32c(m_seed_crc32c, {header.data(), 5}, *body) != crc32c) {
    return damaged("does not match its checksum");
  }
  *kind = static_cast<ArchiveRecord>(header[0]);
  return {};
}

bool ArchiveReader::is_record_at(std::streamoff offset) {
  m_in.clear();
  m_in.seekg(offset);
  ArchiveRecord kind;
  std::string body;
  const uint64_t records = m_records;
  const std::streamoff begin = m_begin;
  const uint32_t length = m_length;
  const bool good = m_in && read(&kind, &body).ok();
  m_records = records;
  m_begin = begin;
  m_length = length;
  return good;
}

bool ArchiveReader::find_next() {
  if (m_begin < 0) {
    return false;
  }
  // Its length may be what is damaged.
  const std::streamoff behind = m_begin + static_cast<std::streamoff>(kRecordHeaderBytes + m_length);
  const bool found = is_record_at(behind);
  if (!found) {
    return search(m_begin + 1);
  }
  m_in.clear();
  m_in.seekg(behind);
  return true;
}

size_t ArchiveReader::read_at(std::streamoff from, std::string* window) {
  const auto bytes = static_cast<size_t>(std::clamp<std::streamoff>(m_end - from, 0, window->size()));
  m_in.clear();
  m_in.seekg(from);
  m_in.read(window->data(), static_cast<std::streamsize>(bytes));
  if (m_in) {
    return bytes;
  }
  for (size_t at = 0, slice = 0; at < bytes; at += slice) {
    const std::streamoff offset = from + static_cast<std::streamoff>(at);
    slice = std::min(bytes - at, kSectorBytes - static_cast<size_t>(offset) % kSectorBytes);
    m_in.clear();
    m_in.seekg(offset);
    m_in.read(window->data() + at, static_cast<std::streamsize>(slice));
    if (!m_in) {
      std::fill_n(window->begin() + static_cast<std::ptrdiff_t>(at), slice, '\0');
    }
  }
  return bytes;
}

bool ArchiveReader::search(std::streamoff from) {
  std::string window(kSearchBytes + kRecordHeaderBytes, '\0');
  for (;; from += kSearchBytes) {
    const size_t bytes = read_at(from, &window);
    for (size_t at = 0; at + kRecordHeaderBytes <= bytes && at < kSearchBytes; ++at) {
      const auto kind = static_cast<ArchiveRecord>(window[at]);
      const bool begins =
          kind == ArchiveRecord::object || kind == ArchiveRecord::collection || kind == ArchiveRecord::end;
      const std::streamoff offset = from + static_cast<std::streamoff>(at);
      if (begins && vtkv::decode_fixed32(window.data() + at + 1) <= kBeginningBytesMax && is_record_at(offset)) {
        m_in.clear();
        m_in.seekg(offset);
        return true;
      }
    }
    if (bytes < window.size()) {
      return false;
    }
  }
}

}  // namespace swimstore
