// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/format_value.h"

#include <algorithm>
#include <map>
#include <regex>
#include <stdexcept>

#include "vtkv/util/coding.h"

namespace vtkv {

std::optional<PageBits> PageBits::of(const std::string& type) {
  static const std::regex pattern("(.+) bits? ([0-9]+)(?:–([0-9]+))?");
  std::smatch match;
  if (!std::regex_match(type, match, pattern)) {
    return {};
  }
  const unsigned first = static_cast<unsigned>(std::stoul(match[2]));
  return PageBits{match[1], first, match[3].matched ? static_cast<unsigned>(std::stoul(match[3])) : first};
}

std::optional<size_t> page_type_bytes(const std::string& type) {
  static const std::map<std::string, size_t, std::less<>> sizes = {{"u8", 1},
                                                                   {"u16", 2},
                                                                   {"u32", 4},
                                                                   {"u64", 8},
                                                                   {"u32 BE", 4},
                                                                   {"u64 BE", 8},
                                                                   {"i8 flipped", 1},
                                                                   {"i64 BE flipped", 8},
                                                                   {"u32 BE reversed", 4},
                                                                   {"crc32c", 4}};
  static const std::regex bytes("([0-9]+) (?:bytes?|zeros?)");
  if (const auto found = sizes.find(type); found != sizes.end()) {
    return found->second;
  }
  std::smatch match;
  return std::regex_match(type, match, bytes) ? std::optional<size_t>(std::stoul(match[1])) : std::nullopt;
}

namespace {

bool is_number(const std::string& type) {
  return page_type_bytes(type) && !type.ends_with('s') && !type.ends_with("byte");
}

uint32_t reversed(uint32_t value) {
  uint32_t result = 0;
  for (int bit = 0; bit < 32; ++bit) {
    result |= (value >> bit & 1) << (31 - bit);
  }
  return result;
}

uint64_t stored_form(const std::string& type, uint64_t value) {
  return type == "i8 flipped"         ? value ^ 0x80
         : type.ends_with("flipped")  ? value ^ uint64_t { 1 } << 63
         : type.ends_with("reversed") ? reversed(static_cast<uint32_t>(value))
                                      : value;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\0' || c == '\1') {
      out += {'\1', static_cast<char>(c + 1)};
    } else {
      out += c;
    }
  }
  return out + '\0';
}

}  // namespace

std::optional<PageValue> decode_page_value(const std::string& type, const std::string& bytes) {
  std::string_view cursor = bytes;
  if (is_number(type)) {
    if (bytes.size() != *page_type_bytes(type)) {
      return {};
    }
    const bool big = type.find(" BE") != std::string::npos;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes[big ? bytes.size() - 1 - i : i])} << 8 * i;
    }
    const uint64_t number = stored_form(type, value);
    return PageValue(type == "i8 flipped" ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(number)}) : number);
  }
  uint64_t number = 0;
  int64_t difference = 0;
  std::string_view text;
  if (type == "varint") {
    return get_varint64(&cursor, &number) && cursor.empty() ? std::optional<PageValue>(number) : std::nullopt;
  }
  if (type == "zigzag") {
    return get_signed(&cursor, &difference) && cursor.empty() ? std::optional<PageValue>(difference) : std::nullopt;
  }
  if (type == "string") {
    return get_length_prefixed(&cursor, &text) && cursor.empty() ? std::optional<PageValue>(text) : std::nullopt;
  }
  if (type == "text") {
    std::string out;
    for (size_t i = 0; i + 1 < bytes.size(); ++i) {
      out += bytes[i] == '\1' ? static_cast<char>(bytes[++i] - 1) : bytes[i];
    }
    return escaped(out) == bytes ? std::optional<PageValue>(out) : std::nullopt;
  }
  if (page_type_bytes(type) && bytes.size() != *page_type_bytes(type)) {
    return {};
  }
  if (type.ends_with("zeros") && bytes.find_first_not_of('\0') != std::string::npos) {
    return {};
  }
  return PageValue(bytes);
}

std::string encode_page_value(const std::string& type, const PageValue& value) {
  if (value.bytes) {
    std::string bytes;
    if (type == "string") {
      put_length_prefixed(&bytes, *value.bytes);
      return bytes;
    }
    return type == "text" ? escaped(*value.bytes) : *value.bytes;
  }
  std::string bytes;
  if (type == "varint") {
    put_varint64(&bytes, *value.number);
  } else if (type == "zigzag") {
    put_signed(&bytes, static_cast<int64_t>(*value.number));
  } else if (is_number(type)) {
    const uint64_t stored = stored_form(type, *value.number);
    for (size_t i = 0; i < *page_type_bytes(type); ++i) {
      bytes += static_cast<char>(stored >> 8 * i);
    }
    if (type.find(" BE") != std::string::npos) {
      std::reverse(bytes.begin(), bytes.end());
    }
  } else {
    throw std::runtime_error("TYPE '" + type + "' of doc/on_disk_format.md holds no number\n");
  }
  return bytes;
}

}  // namespace vtkv
