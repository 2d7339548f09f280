// SPDX-License-Identifier: LGPL-2.1-or-later
// A file that a tool writes for its user, of what a store holds.
#pragma once

#include <string>
#include <string_view>

#include "vtkv/status.h"

namespace vtkv {

// A new one is its owner's alone, as the store's files are. What was in it is replaced.
Status write_output_file(const std::string& path, std::string_view bytes);

}  // namespace vtkv
