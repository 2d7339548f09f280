// SPDX-License-Identifier: LGPL-2.1-or-later
// Integers and strings as bytes.
//
// put_* appends to a string. get_* decodes at the start of a cursor and moves it on; it returns false,
// leaving the cursor where it was, when the bytes end too early or are no valid encoding. No function
// here reads past the end of what it was given, except decode_*, whose caller vouches for the length.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace vtkv {

static_assert(std::endian::native == std::endian::little, "on-disk integers are read in place");

inline constexpr size_t kMaxVarint64Bytes = 10;

// Fixed width, little endian: for structures that are read back field by field.

inline void encode_fixed32(char* to, uint32_t value) { std::memcpy(to, &value, sizeof value); }

inline uint32_t decode_fixed32(const char* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline uint64_t decode_fixed64(const char* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void put_fixed8(std::string* to, uint8_t value);
void put_fixed16(std::string* to, uint16_t value);
void put_fixed32(std::string* to, uint32_t value);
void put_fixed64(std::string* to, uint64_t value);
bool get_fixed8(std::string_view* cursor, uint8_t* value);
bool get_fixed16(std::string_view* cursor, uint16_t* value);
bool get_fixed32(std::string_view* cursor, uint32_t* value);
bool get_fixed64(std::string_view* cursor, uint64_t* value);

// Fixed width, big endian: the order of the bytes is the order of the numbers, for use in keys.

void put_ordered32(std::string* to, uint32_t value);
void put_ordered64(std::string* to, uint64_t value);
bool get_ordered32(std::string_view* cursor, uint32_t* value);
bool get_ordered64(std::string_view* cursor, uint64_t* value);

// Seven bits per byte, the low ones first, the top bit set on all bytes but the last.

// Writes at most kMaxVarint64Bytes; returns the end.
char* encode_varint64(char* to, uint64_t value);
inline size_t varint_bytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }
void put_varint32(std::string* to, uint32_t value);
void put_varint64(std::string* to, uint64_t value);
bool get_varint32(std::string_view* cursor, uint32_t* value);
bool get_varint64(std::string_view* cursor, uint64_t* value);

// A varint32 length, then the bytes. The result points into the cursor's memory.
void put_length_prefixed(std::string* to, std::string_view value);
bool get_length_prefixed(std::string_view* cursor, std::string_view* value);

// The next `length` bytes as they are.
bool get_bytes(std::string_view* cursor, size_t length, std::string_view* value);

// Signed numbers as varints: 0, -1, 1, -2, … become 0, 1, 2, 3, …

inline void put_signed(std::string* to, int64_t value) {
  put_varint64(to, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

inline bool get_signed(std::string_view* cursor, int64_t* value) {
  uint64_t raw = 0;
  if (!get_varint64(cursor, &raw)) {
    return false;
  }
  *value = static_cast<int64_t>(raw >> 1 ^ (~(raw & 1) + 1));
  return true;
}

}  // namespace vtkv
