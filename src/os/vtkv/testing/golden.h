// SPDX-License-Identifier: LGPL-2.1-or-later
// Annotated bytes for tests of durable formats.
#pragma once

#include <string>
#include <string_view>

namespace vtkv {

// "01 ff  # a comment up to the end of the line" -> the bytes; anything but hex digits is skipped.
inline std::string bytes_from_hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  bool comment = false;
  for (const char c : text) {
    if (c == '\n') {
      comment = false;
    } else if (c == '#') {
      comment = true;
    }
    const size_t digit = comment ? std::string_view::npos : std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) {
      continue;
    }
    if (high < 0) {
      high = static_cast<int>(digit);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

// 16 bytes a line, so that a failing comparison shows where.
inline std::string hex_dump(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
    text.push_back(i % 16 == 15 ? '\n' : ' ');
  }
  return text;
}

}  // namespace vtkv
