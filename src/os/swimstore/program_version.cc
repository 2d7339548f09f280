// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/program_version.h"

#include "swimstore/format/format_version.h"
#include "swimstore/tool/object_archive.h"
#include "vtkv/program_version.h"

namespace swimstore {

std::string version_text(std::string_view program) {
  std::vector<vtkv::FormatSupport> formats = vtkv::format_support();
  formats.insert(formats.begin(), {"superblock", kSuperblockVersion, kSuperblockVersionOldest, kSuperblockVersion});
  formats.push_back({"archive", kArchiveVersion, 1, kArchiveVersion});
  return vtkv::version_text(program, formats);
}

}  // namespace swimstore
