// SPDX-License-Identifier: LGPL-2.1-or-later
// The version of this source (CMakeLists.txt has it), and what --version of a program prints: its name, that version,
// and of the formats by which a program is told what it can use, the version that it makes and those that it reads.
// doc/changes.md has their history.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vtkv {

struct FormatSupport {
  std::string_view name;
  uint32_t made;
  uint32_t oldest_read;
  uint32_t newest_read;
};

// "unknown" where the build does not tell it, as in a grafted tree.
std::string_view program_version();

// Those of a database.
std::vector<FormatSupport> format_support();

// Lines, the last one without its end.
std::string version_text(std::string_view program, const std::vector<FormatSupport>& formats);

}  // namespace vtkv
