// SPDX-License-Identifier: LGPL-2.1-or-later
// A file of objects, as export writes and import reads it, a stream of records that can be read once, in order:
// doc/on_disk_format.md, "Archive", "Archive record", "End of an archive".
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

inline constexpr uint32_t kArchiveVersion = 4;

enum class ArchiveRecord : char {
  note = 'N',
  collection = 'C',
  object = 'O',
  doubtful = 'Q',
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
  ArchiveWriter(std::ostream* out, std::string name, uint64_t seed);
  // Code::no_space, io_error: the archive is of no use.
  vtkv::Status write(ArchiveRecord kind, std::string_view body);
  // The last record.
  vtkv::Status end(uint64_t objects);

 private:
  vtkv::Status check() const;

  std::ostream& m_out;
  const std::string m_name;
  const uint64_t m_seed;
};

class ArchiveReader {
 public:
  // `name` is the file's, for messages.
  ArchiveReader(std::istream* in, std::string name) : m_in(*in), m_name(std::move(name)) {}
  // Code::corruption, Code::unsupported. *note: empty, or what is damaged and yet no hindrance.
  vtkv::Status open(std::string* note);
  // Code::corruption: a damaged record, behind which find_next may find another.
  vtkv::Status read(ArchiveRecord* kind, std::string* body);
  // Goes on behind a damaged record. False: no record follows, or the file cannot be searched.
  bool find_next();
  vtkv::Status damaged(std::string_view what) const;
  const std::string& name() const { return m_name; }

 private:
  // With the seed that the last record tells.
  bool open_by_last_record();
  bool is_record_at(std::streamoff offset);
  bool search(std::streamoff from);
  // Bytes that cannot be read are zeros. How many there are up to the file's end, at most window's size.
  size_t read_at(std::streamoff from, std::string* window);

  std::istream& m_in;
  const std::string m_name;
  std::streamoff m_end = -1;  // of the file; -1: it cannot be searched
  uint32_t m_seed_crc32c = 0;
  uint64_t m_records = 0;
  std::streamoff m_begin = -1;  // of the record read last; -1: the file cannot be searched
  uint32_t m_length = 0;  // of its body, as it says
};

}  // namespace swimstore
