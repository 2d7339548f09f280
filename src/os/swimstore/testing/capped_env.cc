// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/capped_env.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace swimstore {

uint64_t CappedEnv::used_bytes() const {
  uint64_t bytes = 0;
  std::error_code gone;  // a file may be removed meanwhile
  for (const auto& entry : std::filesystem::recursive_directory_iterator(m_directory, gone)) {
    struct stat file;
    if (::stat(entry.path().c_str(), &file) == 0) {
      bytes += uint64_t{512} * static_cast<uint64_t>(file.st_blocks);
    }
  }
  return bytes;
}

vtkv::Status CappedEnv::file_system_info(const std::string& path, vtkv::FileSystemInfo* info) {
  VTKV_RETURN_IF_ERROR(m_base->file_system_info(path, info));
  info->total_bytes = m_capacity_bytes;
  info->available_bytes = m_capacity_bytes - std::min<uint64_t>(m_capacity_bytes, used_bytes());
  return {};
}

}  // namespace swimstore
