// A file of objects, as export writes and import reads it: a stream of records that can be read once, in order.
//
// OFFSET SIZE FIELD
// 0      8    magic "SWIMARCH"
// 8      4    version (2; in 1 there are no hints, and no collection is without a name)
// 12     4    crc32c of bytes 0 to 11
// then records:
// 0      1    kind
// 1      4    length of the body, at most 2^28
// 5      4    crc32c of kind, length and body
// 9      ..   body (integers little-endian, strings as varint length and bytes):
//   'C'  collection   name, varint bits. Import makes it where it is missing. Name "": what follows was in none
//   'O'  object       its key in the tree (format/key_codec.h), varint size. It belongs to the collection whose pool
//                     and hashes match; what follows belongs to the object, up to its 'E'
//   'T'  hints        varint expected object size, varint expected write size, varint flags
//   'A'  attribute    name, value
//   'D'  data         u64 offset, the bytes. What no record covers is a hole
//   'H'  omap header  the bytes
//   'M'  omap values  per value: key, value
//   'E'  end of the object, which is whole
//   'Z'  end of the archive: u64 number of objects. A file without it is cut short
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>

#include "vtkv/status.h"

namespace swimstore {

enum class ArchiveRecord : char {
  collection = 'C',
  object = 'O',
  hints = 'T',
  attribute = 'A',
  data = 'D',
  omap_header = 'H',
  omap_values = 'M',
  object_end = 'E',
  end = 'Z',
};

class ArchiveWriter {
 public:
  // `name` is the file's, for messages.
  ArchiveWriter(std::ostream* out, std::string name);
  // Code::no_space, io_error: the archive is of no use.
  vtkv::Status write(ArchiveRecord kind, std::string_view body);
  // After the last record.
  vtkv::Status flush();

 private:
  vtkv::Status check() const;

  std::ostream& m_out;
  const std::string m_name;
};

class ArchiveReader {
 public:
  // `name` is the file's, for messages.
  ArchiveReader(std::istream* in, std::string name) : m_in(*in), m_name(std::move(name)) {}
  // Code::corruption, Code::unsupported.
  vtkv::Status open();
  // Code::corruption: a damaged record, behind which find_next may find another.
  vtkv::Status read(ArchiveRecord* kind, std::string* body);
  // Goes on behind a damaged record. False: no record follows, or the file cannot be searched.
  bool find_next();
  vtkv::Status damaged(std::string_view what) const;
  const std::string& name() const { return m_name; }

 private:
  bool is_record_at(std::streamoff offset);
  bool search(std::streamoff from);

  std::istream& m_in;
  const std::string m_name;
  uint64_t m_records = 0;
  std::streamoff m_begin = -1;  // of the record read last; -1: the file cannot be searched
  uint32_t m_length = 0;        // of its body, as it says
};

}  // namespace swimstore
