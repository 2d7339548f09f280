// A file of objects, as export writes and import reads it: a stream of records that can be read once, in order.
//
// OFFSET SIZE FIELD
// 0      8    magic "SWIMARCH"
// 8      4    version (1)
// 12     4    crc32c of bytes 0 to 11
// then records:
// 0      1    kind
// 1      4    length of the body, at most 2^28
// 5      4    crc32c of kind, length and body
// 9      ..   body (integers little-endian, strings as varint length and bytes):
//   'C'  collection   name, varint bits
//   'O'  object       its key in the tree (format/key_codec.h), varint size. Belongs to the last collection;
//                     what follows belongs to the object, up to its 'E'
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
  attribute = 'A',
  data = 'D',
  omap_header = 'H',
  omap_values = 'M',
  object_end = 'E',
  end = 'Z',
};

class ArchiveWriter {
 public:
  explicit ArchiveWriter(std::ostream* out);
  void write(ArchiveRecord kind, std::string_view body);

 private:
  std::ostream& m_out;
};

class ArchiveReader {
 public:
  // `name` is the file's, for messages.
  ArchiveReader(std::istream* in, std::string name) : m_in(*in), m_name(std::move(name)) {}
  // Code::corruption, Code::unsupported.
  vtkv::Status open();
  vtkv::Status read(ArchiveRecord* kind, std::string* body);
  vtkv::Status damaged(std::string_view what) const;

 private:
  std::istream& m_in;
  const std::string m_name;
  uint64_t m_records = 0;
};

}  // namespace swimstore
