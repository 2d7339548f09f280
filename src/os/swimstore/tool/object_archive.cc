#include "swimstore/tool/object_archive.h"

#include <cerrno>

#include <fmt/format.h>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr std::string_view kMagic = "SWIMARCH";
constexpr uint32_t kVersion = 2;
constexpr size_t kFileHeaderBytes = 16;
constexpr size_t kRecordHeaderBytes = 9;
constexpr uint32_t kBodyBytesMax = 1u << 28;
// Of the records at which a search may go on: those that begin an object or a collection, and the last.
constexpr uint32_t kBeginningBytesMax = 1u << 16;
constexpr size_t kSearchBytes = 1u << 20;

std::string file_header(uint32_t version) {
  std::string header(kMagic);
  vtkv::put_fixed32(&header, version);
  vtkv::put_fixed32(&header, vtkv::crc32c(header));
  return header;
}

}  // namespace

ArchiveWriter::ArchiveWriter(std::ostream* out, std::string name) : m_out(*out), m_name(std::move(name)) {
  m_out << file_header(kVersion);
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
    return Status::unsupported(fmt::format("{}: a piece of {} bytes is too large for an archive", m_name, body.size()));
  }
  std::string header(1, static_cast<char>(kind));
  vtkv::put_fixed32(&header, static_cast<uint32_t>(body.size()));
  vtkv::put_fixed32(&header, vtkv::crc32c_extend(vtkv::crc32c(header), body.data(), body.size()));
  errno = 0;
  m_out << header << body;
  return check();
}

Status ArchiveWriter::flush() {
  errno = 0;
  m_out.flush();
  return check();
}

Status ArchiveReader::damaged(std::string_view what) const {
  return Status::corruption(fmt::format("{}: record {} {}", m_name, m_records, what));
}

Status ArchiveReader::open() {
  std::string header(kFileHeaderBytes, '\0');
  m_in.read(header.data(), static_cast<std::streamsize>(header.size()));
  std::string_view cursor(header);
  uint32_t version = 0;
  if (!m_in || !cursor.starts_with(kMagic)) {
    return Status::corruption(m_name + ": is no archive that export wrote");
  }
  cursor.remove_prefix(kMagic.size());
  vtkv::get_fixed32(&cursor, &version);
  VTKV_RETURN_IF_ERROR(check_version(m_name, version, kVersion));
  return header == file_header(version) ? Status() : Status::corruption(m_name + ": its first bytes are damaged");
}

Status ArchiveReader::read(ArchiveRecord* kind, std::string* body) {
  ++m_records;
  m_begin = m_in.tellg();
  m_length = 0;
  std::string header(kRecordHeaderBytes, '\0');
  m_in.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (!m_in) {
    return damaged("is missing: the file was cut short");
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
    return damaged("is cut short");
  }
  if (vtkv::crc32c_extend(vtkv::crc32c(header.data(), 5), body->data(), body->size()) != crc32c) {
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

bool ArchiveReader::search(std::streamoff from) {
  std::string window(kSearchBytes + kRecordHeaderBytes, '\0');
  for (;; from += kSearchBytes) {
    m_in.clear();
    m_in.seekg(from);
    m_in.read(window.data(), static_cast<std::streamsize>(window.size()));
    const auto bytes = static_cast<size_t>(m_in.gcount());
    for (size_t at = 0; at + kRecordHeaderBytes <= bytes && at < kSearchBytes; ++at) {
      const auto kind = static_cast<ArchiveRecord>(window[at]);
      const bool begins = kind == ArchiveRecord::object || kind == ArchiveRecord::collection || kind == ArchiveRecord::end;
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
