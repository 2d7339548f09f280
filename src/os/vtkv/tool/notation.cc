// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/notation.h"

namespace vtkv {

namespace {

constexpr char kDigits[] = "0123456789abcdef";

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string to_notation(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      text.push_back(c);
    } else {
      text += "\\x";
      text.push_back(kDigits[byte >> 4]);
      text.push_back(kDigits[byte & 15]);
    }
  }
  return text;
}

Status from_notation(std::string_view text, std::string* bytes) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      decoded.push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      decoded.push_back('\\');
      ++i;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && hex_value(text[i + 2]) >= 0 &&
               hex_value(text[i + 3]) >= 0) {
      decoded.push_back(static_cast<char>(hex_value(text[i + 2]) * 16 + hex_value(text[i + 3])));
      i += 3;
    } else {
      return Status::invalid_argument("'" + std::string(text) + "' is no key or value: after the backslash at byte " +
                                      std::to_string(i) + " must come another one, or x and two hexadecimal digits");
    }
  }
  *bytes = std::move(decoded);
  return {};
}

}  // namespace vtkv
