// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/coding.h"

#include <limits>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

template <typename Integer>
void put_raw(std::string* to, Integer value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Integer>
bool get_raw(std::string_view* cursor, Integer* value) {
  if (cursor->size() < sizeof *value) {
    return false;
  }
  std::memcpy(value, cursor->data(), sizeof *value);
  cursor->remove_prefix(sizeof *value);
  return true;
}

}  // namespace

void put_fixed8(std::string* to, uint8_t value) { put_raw(to, value); }
void put_fixed16(std::string* to, uint16_t value) { put_raw(to, value); }
void put_fixed32(std::string* to, uint32_t value) { put_raw(to, value); }
void put_fixed64(std::string* to, uint64_t value) { put_raw(to, value); }

bool get_fixed8(std::string_view* cursor, uint8_t* value) { return get_raw(cursor, value); }
bool get_fixed16(std::string_view* cursor, uint16_t* value) { return get_raw(cursor, value); }
bool get_fixed32(std::string_view* cursor, uint32_t* value) { return get_raw(cursor, value); }
bool get_fixed64(std::string_view* cursor, uint64_t* value) { return get_raw(cursor, value); }

void put_ordered32(std::string* to, uint32_t value) { put_raw(to, __builtin_bswap32(value)); }
void put_ordered64(std::string* to, uint64_t value) { put_raw(to, __builtin_bswap64(value)); }

bool get_ordered32(std::string_view* cursor, uint32_t* value) {
  if (!get_raw(cursor, value)) {
    return false;
  }
  *value = __builtin_bswap32(*value);
  return true;
}

bool get_ordered64(std::string_view* cursor, uint64_t* value) {
  if (!get_raw(cursor, value)) {
    return false;
  }
  *value = __builtin_bswap64(*value);
  return true;
}

char* encode_varint64(char* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

void put_varint64(std::string* to, uint64_t value) {
  char buffer[kMaxVarint64Bytes];
  to->append(buffer, static_cast<size_t>(encode_varint64(buffer, value) - buffer));
}

void put_varint32(std::string* to, uint32_t value) { put_varint64(to, value); }

bool get_varint64(std::string_view* cursor, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < cursor->size() && i < kMaxVarint64Bytes; ++i) {
    const auto byte = static_cast<uint8_t>((*cursor)[i]);
    // The tenth byte holds the 64th bit and nothing else.
    if (i == kMaxVarint64Bytes - 1 && byte > 1) {
      return false;
    }
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      cursor->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

bool get_varint32(std::string_view* cursor, uint32_t* value) {
  std::string_view rest = *cursor;
  uint64_t wide = 0;
  if (!get_varint64(&rest, &wide) || wide > std::numeric_limits<uint32_t>::max()) {
    return false;
  }
  *cursor = rest;
  *value = static_cast<uint32_t>(wide);
  return true;
}

void put_length_prefixed(std::string* to, std::string_view value) {
  VTKV_ASSERT(value.size() <= std::numeric_limits<uint32_t>::max());
  put_varint32(to, static_cast<uint32_t>(value.size()));
  to->append(value);
}

bool get_length_prefixed(std::string_view* cursor, std::string_view* value) {
  std::string_view rest = *cursor;
  uint32_t length = 0;
  if (!get_varint32(&rest, &length) || !get_bytes(&rest, length, value)) {
    return false;
  }
  *cursor = rest;
  return true;
}

bool get_bytes(std::string_view* cursor, size_t length, std::string_view* value) {
  if (cursor->size() < length) {
    return false;
  }
  *value = cursor->substr(0, length);
  cursor->remove_prefix(length);
  return true;
}

}  // namespace vtkv
