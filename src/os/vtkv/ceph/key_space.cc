// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/ceph/key_space.h"

namespace vtkv {

namespace {

constexpr char kEnd = '\x00';
constexpr char kBehindEnd = '\x01';
constexpr char kLowEscape = '\x01';
constexpr char kHighEscape = '\xfe';

void append_prefix(std::string_view prefix, std::string* out) {
  for (const char c : prefix) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x01) {
      out->push_back(kLowEscape);
      out->push_back(static_cast<char>(byte + 1));
    } else if (byte >= 0xfe) {
      out->push_back(kHighEscape);
      out->push_back(static_cast<char>(byte - 0xfd));
    } else {
      out->push_back(c);
    }
  }
}

bool decode_prefix(std::string_view escaped, std::string* prefix) {
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != kLowEscape && escaped[i] != kHighEscape) {
      prefix->push_back(escaped[i]);
      continue;
    }
    const bool low = escaped[i] == kLowEscape;
    if (++i == escaped.size() || escaped[i] < 1 || escaped[i] > 2) {
      return false;
    }
    prefix->push_back(static_cast<char>(escaped[i] + (low ? -1 : 0xfd)));
  }
  return true;
}

}  // namespace

std::string encode_key(std::string_view prefix, std::string_view key) {
  std::string encoded;
  encoded.reserve(prefix.size() + 1 + key.size());
  append_prefix(prefix, &encoded);
  encoded.push_back(kEnd);
  encoded.append(key);
  return encoded;
}

bool decode_key(std::string_view encoded, std::string* prefix, std::string* key) {
  const size_t end = encoded.find(kEnd);
  std::string decoded;
  if (end == std::string_view::npos || !decode_prefix(encoded.substr(0, end), &decoded)) {
    return false;
  }
  *prefix = std::move(decoded);
  key->assign(encoded.substr(end + 1));
  return true;
}

std::string_view key_part(std::string_view encoded) {
  const size_t end = encoded.find(kEnd);
  return end == std::string_view::npos ? std::string_view() : encoded.substr(end + 1);
}

EncodedRange range_of_prefix(std::string_view prefix) {
  EncodedRange range;
  range.lower = encode_key(prefix, {});
  range.upper = range.lower;
  range.upper.back() = kBehindEnd;
  return range;
}

EncodedRange range_of_everything() { return {std::string(), std::string("\xff")}; }

}  // namespace vtkv
