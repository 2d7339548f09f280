// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys and values as text: printable ASCII stands for itself, a backslash is written \\, every other byte
// \xHH. What is printed can be given back as an argument and means the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

std::string to_notation(std::string_view bytes);
// Code::invalid_argument says where the text goes wrong. Bytes beyond ASCII may also stand for themselves.
Status from_notation(std::string_view text, std::string* bytes);

}  // namespace vtkv
