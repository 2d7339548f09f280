// SPDX-License-Identifier: LGPL-2.1-or-later
// What file systems are, for callers that ask again and again for their space.
//
// Space, and whether writes are allowed, the kernel tells in two microseconds, and it is asked each time. Mount point,
// options and device come from files of /proc and /sys, which take a hundred times as long and hardly ever change: they
// are read again after a second, or when another file system is there.
//
// Somebody may take a directory away from a process that has files open below it, by chown or chmod: of what was asked
// before, the space is then that of a lock file of the process on the same device. Else a store would call itself full.
//
// Thread-safe. No lock is held while the host is asked, but in that case.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "vtkv/env.h"
#include "vtkv/env/posix/held_locks.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class FileSystemInfoCache {
 public:
  // `locks`: which the process holds, and outlive this; null: none.
  explicit FileSystemInfoCache(const HeldLocks* locks = nullptr) : m_held(locks) {}

  // As read_file_system_info().
  Status read(const std::string& path, uint64_t now_us, FileSystemInfo* info) EXCLUDES(m_lock);
  // How often files were read for it.
  uint64_t descriptions() const EXCLUDES(m_lock);

 private:
  struct Description {
    uint64_t device = 0;
    uint64_t read_us = 0;
    FileSystemInfo info;  // but for its space
  };
  bool find(const std::string& path, uint64_t device, uint64_t now_us, FileSystemInfo* info) const EXCLUDES(m_lock);
  bool read_by_lock_file(const std::string& path, FileSystemInfo* info) const EXCLUDES(m_lock);
  static void take_space(const FileSystemInfo& from, FileSystemInfo* to);

  const HeldLocks* const m_held;
  mutable Mutex m_lock;
  std::map<std::string, Description> m_descriptions GUARDED_BY(m_lock);  // by path
  uint64_t m_read GUARDED_BY(m_lock) = 0;
};

}  // namespace vtkv
