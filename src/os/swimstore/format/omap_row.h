// SPDX-License-Identifier: LGPL-2.1-or-later
// Rows of an omap that is kept in parts, one in each cube, and the floor below which they do not count.
// doc/on_disk_format.md, "P: row of an omap in parts", "F: floor of an omap in parts".
//
// Write ids are object ids (cube/object_ids.h): of two rows that have the same key, in whatever cubes, the one with the
// greater write id was written later. No two rows of one key have the same, as a transaction takes an id of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swimstore {

inline constexpr uint8_t kOmapRowVersion = 1;
inline constexpr uint8_t kOmapFloorVersion = 1;

struct OmapRow {
  enum class Kind : uint8_t { value = 1, tombstone = 2 };

  Kind kind = Kind::value;
  uint64_t write_id = 0;
  std::string_view value;  // of a decoded row: in the bytes that it was decoded from
};

void encode_omap_row(const OmapRow& row, std::string* out);
// False on malformed bytes, a version from the future, or an id that no write has.
bool decode_omap_row(std::string_view bytes, OmapRow* row);

// Rows with a smaller write id do not count.
std::string encode_omap_floor(uint64_t write_id);
bool decode_omap_floor(std::string_view bytes, uint64_t* write_id);

}  // namespace swimstore
