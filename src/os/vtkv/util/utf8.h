// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes as text that a program for JSON takes.
#pragma once

#include <string>
#include <string_view>

namespace vtkv {

// UTF-8 as it is; each byte that belongs to no character of it as \xHH (two hexadecimal digits).
std::string to_utf8(std::string_view bytes);

}  // namespace vtkv
