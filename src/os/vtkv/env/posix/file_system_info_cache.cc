// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info_cache.h"

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {

namespace {

constexpr uint64_t kValid_us = 1000 * 1000;
constexpr size_t kPathsMax = 64;  // a process asks for few

}  // namespace

bool FileSystemInfoCache::find(const std::string& path, uint64_t device, uint64_t now_us, FileSystemInfo* info) const {
  MutexLock lock(m_lock);
  const auto found = m_descriptions.find(path);
  if (found == m_descriptions.end() || found->second.device != device || now_us - found->second.read_us >= kValid_us) {
    return false;
  }
  const FileSystemInfo space = *info;
  *info = found->second.info;
  info->total_bytes = space.total_bytes;
  info->available_bytes = space.available_bytes;
  info->read_only = space.read_only;
  return true;
}

Status FileSystemInfoCache::read(const std::string& path, uint64_t now_us, FileSystemInfo* info) {
  uint64_t device = 0;
  VTKV_RETURN_IF_ERROR(read_file_system_space(path, info, &device));
  if (find(path, device, now_us, info)) {
    return {};
  }
  describe_file_system(path, device, info);
  MutexLock lock(m_lock);
  if (m_descriptions.size() >= kPathsMax) {
    m_descriptions.clear();
  }
  m_descriptions[path] = {device, now_us, *info};
  ++m_read;
  return {};
}

uint64_t FileSystemInfoCache::descriptions() const {
  MutexLock lock(m_lock);
  return m_read;
}

}  // namespace vtkv
