// SPDX-License-Identifier: LGPL-2.1-or-later
// What a field of doc/on_disk_format.md holds, and its bytes by the TYPE that the page gives it ("How a table is
// read").
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace vtkv {

// What a field holds: a number, or bytes.
struct PageValue {
  template <typename Number>
    requires std::integral<Number> || std::is_enum_v<Number>
  PageValue(Number value) : number(static_cast<uint64_t>(value)) {}
  PageValue(std::string value) : bytes(std::move(value)) {}
  PageValue(std::string_view value) : bytes(value) {}
  PageValue(const char* value) : bytes(value) {}
  template <size_t Size>
  PageValue(const std::array<uint8_t, Size>& value) : bytes(std::string(value.begin(), value.end())) {}

  std::optional<uint64_t> number;
  std::optional<std::string> bytes;
  bool operator==(const PageValue&) const = default;
};

// As it lies in memory: a magic number as its text.
template <std::integral Number>
std::string raw_bytes(Number value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// What "u64 BE bits 56–59" says: the bits of a number that several rows share.
struct PageBits {
  std::string unit;
  unsigned first = 0, last = 0;

  // nullopt: the type is of no bits.
  static std::optional<PageBits> of(const std::string& type);
  uint64_t mask() const {
    return (last - first == 63 ? ~uint64_t{0} : (uint64_t{1} << (last - first + 1)) - 1) << first;
  }
};

// Of a TYPE that always takes as many bytes.
std::optional<size_t> page_type_bytes(const std::string& type);
// nullopt: no value of this TYPE has these bytes. Of a TYPE that is described elsewhere: the bytes.
std::optional<PageValue> decode_page_value(const std::string& type, const std::string& bytes);
// Throws std::runtime_error for a number of a TYPE that holds none.
std::string encode_page_value(const std::string& type, const PageValue& value);

}  // namespace vtkv
