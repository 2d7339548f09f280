// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a value lies that stayed in the log (WiscKey, section 3): what the tree holds in its place.
// The value of an entry of type value_pointer: doc/on_disk_format.md, "Value pointer".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vtkv {

struct ValuePointer {
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint32_t crc32c = 0;

  void encode(std::string* out) const;
  // False when malformed or when anything follows. Whether the segment exists is the reader's to check.
  bool decode(std::string_view encoded);
  bool operator==(const ValuePointer&) const = default;
};

// What the crc32c field has to be.
uint32_t value_checksum(std::string_view key, std::string_view value);

}  // namespace vtkv
