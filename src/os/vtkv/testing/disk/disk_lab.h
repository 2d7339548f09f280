// SPDX-License-Identifier: LGPL-2.1-or-later
// A real file system on a recorded disk, ready to be crashed: what the tests of real file systems share.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "vtkv/testing/disk/disk_crash.h"
#include "vtkv/testing/disk/disk_mount.h"
#include "vtkv/testing/disk/fuse_disk.h"

namespace vtkv {

class DiskLab {
 public:
  // To be called before the process has threads. `scratch`: an empty directory. `mkfs_options`: further ones of the
  // program that makes the file system.
  static Status open(FileSystemKind kind, const std::string& mkfs_options, const std::string& scratch,
                     std::unique_ptr<DiskLab>* lab);

  FileSystemKind kind() const { return m_kind; }
  RecordedDisk& disk() { return m_disk; }
  // Where the file system is while it is mounted.
  const std::string& directory() const { return m_directory; }
  // A file system just made.
  const DiskImage& empty() const { return m_empty; }

  // The disk holds the image, nothing has been asked of it, and its file system is mounted: after a crash, by
  // replaying its own journal.
  Status mount(const DiskImage& image);
  Status unmount();
  // As a file, to be looked at later.
  Status save(const DiskImage& image, const std::string& path) const;

 private:
  DiskLab(FileSystemKind kind, const std::string& scratch);

  const FileSystemKind m_kind;
  const std::string m_file;
  const std::string m_directory;
  RecordedDisk m_disk;
  std::unique_ptr<FuseDisk> m_server;  // these in this order
  std::unique_ptr<LoopDevice> m_device;
  std::unique_ptr<DiskMount> m_mount;
  DiskImage m_empty;
};

}  // namespace vtkv
