// SPDX-License-Identifier: LGPL-2.1-or-later
// What --version prints of a program that knows the store (vtkv/program_version.h).
#pragma once

#include <string>
#include <string_view>

namespace swimstore {

std::string version_text(std::string_view program);

}  // namespace swimstore
