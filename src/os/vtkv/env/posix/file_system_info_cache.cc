// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info_cache.h"

#include <cerrno>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {

namespace {

constexpr uint64_t kValid_us = 1000 * 1000;
constexpr size_t kPathsMax = 64;  // a process asks for few

}  // namespace

void FileSystemInfoCache::take_space(const FileSystemInfo& from, FileSystemInfo* to) {
  to->total_bytes = from.total_bytes;
  to->available_bytes = from.available_bytes;
  to->read_only = from.read_only;
}

bool FileSystemInfoCache::find(const std::string& path, uint64_t device, uint64_t now_us, FileSystemInfo* info) const {
  MutexLock lock(m_lock);
  const auto found = m_descriptions.find(path);
  if (found == m_descriptions.end() || found->second.device != device || now_us - found->second.read_us >= kValid_us) {
    return false;
  }
  const FileSystemInfo space = *info;
  *info = found->second.info;
  take_space(space, info);
  return true;
}

bool FileSystemInfoCache::read_by_lock_file(const std::string& path, FileSystemInfo* info) const {
  Description known;
  {
    MutexLock lock(m_lock);
    const auto found = m_descriptions.find(path);
    if (m_held == nullptr || found == m_descriptions.end()) {
      return false;
    }
    known = found->second;
  }
  return m_held->use([&](const HeldLocks::Locks& locks, uint64_t) {
    for (const HeldLocks::Lock& lock : locks) {
      FileSystemInfo space;
      uint64_t device = 0;
      if (lock.descriptor >= 0 && read_file_system_space(lock.descriptor, path, &space, &device).ok() &&
          device == known.device) {
        *info = known.info;
        take_space(space, info);
        return true;
      }
    }
    return false;
  });
}

Status FileSystemInfoCache::read(const std::string& path, uint64_t now_us, FileSystemInfo* info) {
  uint64_t device = 0;
  const Status asked = read_file_system_space(path, info, &device);
  if (asked.error_number() == EACCES && read_by_lock_file(path, info)) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(asked);
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
