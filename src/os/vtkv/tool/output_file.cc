// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/output_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>

namespace vtkv {

Status write_output_file(const std::string& path, std::string_view bytes) {
  const mode_t mask = ::umask(0077);
  std::ofstream out(path, std::ios::binary);
  ::umask(mask);
  out << bytes;
  return out.flush() ? Status() : Status::from_errno(errno, "cannot write " + path);
}

}  // namespace vtkv
