#include "swimstore/tool/object_archive.h"

#include <fmt/format.h>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"
#include "vtkv/util/crc32c.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr std::string_view kMagic = "SWIMARCH";
constexpr uint32_t kVersion = 1;
constexpr size_t kFileHeaderBytes = 16;
constexpr size_t kRecordHeaderBytes = 9;
constexpr uint32_t kBodyBytesMax = 1u << 28;

std::string file_header() {
  std::string header(kMagic);
  vtkv::put_fixed32(&header, kVersion);
  vtkv::put_fixed32(&header, vtkv::crc32c(header));
  return header;
}

}  // namespace

ArchiveWriter::ArchiveWriter(std::ostream* out) : m_out(*out) { m_out << file_header(); }

void ArchiveWriter::write(ArchiveRecord kind, std::string_view body) {
  std::string header(1, static_cast<char>(kind));
  vtkv::put_fixed32(&header, static_cast<uint32_t>(body.size()));
  vtkv::put_fixed32(&header, vtkv::crc32c_extend(vtkv::crc32c(header), body.data(), body.size()));
  m_out << header << body;
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
  return header == file_header() ? Status() : Status::corruption(m_name + ": its first bytes are damaged");
}

Status ArchiveReader::read(ArchiveRecord* kind, std::string* body) {
  ++m_records;
  std::string header(kRecordHeaderBytes, '\0');
  m_in.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (!m_in) {
    return damaged("is missing: the file was cut short");
  }
  std::string_view cursor(header);
  cursor.remove_prefix(1);
  uint32_t length = 0, crc32c = 0;
  vtkv::get_fixed32(&cursor, &length);
  vtkv::get_fixed32(&cursor, &crc32c);
  if (length > kBodyBytesMax) {
    return damaged("has an impossible length");
  }
  body->resize(length);
  m_in.read(body->data(), length);
  if (!m_in) {
    return damaged("is cut short");
  }
  if (vtkv::crc32c_extend(vtkv::crc32c(header.data(), 5), body->data(), body->size()) != crc32c) {
    return damaged("does not match its checksum");
  }
  *kind = static_cast<ArchiveRecord>(header[0]);
  return {};
}

}  // namespace swimstore
