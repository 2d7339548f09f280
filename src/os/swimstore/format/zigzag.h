// Signed numbers as varints: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vtkv/util/coding.h"

namespace swimstore {

inline void put_signed(std::string* to, int64_t value) {
  vtkv::put_varint64(to, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

inline bool get_signed(std::string_view* cursor, int64_t* value) {
  uint64_t raw = 0;
  if (!vtkv::get_varint64(cursor, &raw)) {
    return false;
  }
  *value = static_cast<int64_t>(raw >> 1 ^ (~(raw & 1) + 1));
  return true;
}

}  // namespace swimstore
