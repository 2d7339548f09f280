// SPDX-License-Identifier: LGPL-2.1-or-later
// A file system of this host on a loop device over a file.
//
// What is attached and mounted goes away with these objects; when the process is killed, with its mount namespace:
// qa/enter.sh gives it one of its own. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "vtkv/env.h"
#include "vtkv/status.h"

namespace vtkv {

class LoopDevice {
 public:
  // Logical blocks of 4 KiB; nothing of the file is cached by the host.
  static Status attach(const std::string& file, std::unique_ptr<LoopDevice>* device);
  ~LoopDevice();

  const std::string& path() const { return m_path; }
  // Forgets what was cached, after the file has changed below it.
  Status invalidate();
  // `options`: further ones of the program that makes it. Unsupported: it is missing, or does not know them.
  Status make_file_system(FileSystemKind kind, const std::string& options);

 private:
  LoopDevice(int descriptor, std::string path) : m_descriptor(descriptor), m_path(std::move(path)) {}

  const int m_descriptor;
  const std::string m_path;
};

class DiskMount {
 public:
  static Status mount(const LoopDevice& device, FileSystemKind kind, const std::string& directory,
                      std::unique_ptr<DiskMount>* mount);
  // Patient: the kernel may hold a file for a moment after it was closed.
  Status unmount();
  ~DiskMount();

 private:
  explicit DiskMount(std::string directory) : m_directory(std::move(directory)) {}

  const std::string m_directory;
  bool m_is_mounted = true;
};

}  // namespace vtkv
