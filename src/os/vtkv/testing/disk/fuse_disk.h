// SPDX-License-Identifier: LGPL-2.1-or-later
// A recorded disk as a file of this host: a process of its own answers the kernel's FUSE requests (linux/fuse.h) for
// a mount that is one regular file. A loop device over that file carries a file system.
//
// Requests are answered when no more are waiting, so several are under way at a time, and a flush that was sent while
// writes were under way comes after none of them.
//
// The process ends when nobody has the file open any more: after this object, or after the process that made it,
// however that ends. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "vtkv/status.h"
#include "vtkv/testing/disk/recorded_disk.h"

namespace vtkv {

class FuseDisk {
 public:
  // `path`: an empty file. `mounted_on`: where the disk's file system will be mounted, if it is; both are unmounted
  // when this process is killed. To be called before the process has threads. The mount is seen by this process's
  // mount namespace.
  static Status start(RecordedDisk* disk, const std::string& path, const std::string& mounted_on,
                      std::unique_ptr<FuseDisk>* started);
  ~FuseDisk();

 private:
  FuseDisk(std::string path, pid_t server) : m_path(std::move(path)), m_server(server) {}

  const std::string m_path;
  const pid_t m_server;
};

}  // namespace vtkv
