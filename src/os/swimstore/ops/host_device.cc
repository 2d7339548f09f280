// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/host_device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "vtkv/env.h"

namespace swimstore {

namespace fs = std::filesystem;  // tidy: allow host facts, not data

namespace {

constexpr int kDepthMax = 8;  // loop over dm over md over ...

std::optional<std::string> read_line(const fs::path& file) {
  std::ifstream in(file);  // tidy: allow host facts, not data
  std::string line;
  if (!std::getline(in, line)) {
    return std::nullopt;
  }
  return line;
}

fs::path folder_at(const std::string& link) {
  std::error_code error;
  const fs::path folder = fs::canonical(link, error);
  return error ? fs::path() : folder;
}

// The sysfs folder of the device a file lies on; empty when it has none.
fs::path device_folder_of(const std::string& file) {
  struct stat st;
  if (::stat(file.c_str(), &st) != 0) {  // tidy: allow host facts, not data
    return {};
  }
  fs::path folder = folder_at(fmt::format("/sys/dev/block/{}:{}", major(st.st_dev), minor(st.st_dev)));
  vtkv::FileSystemInfo info;
  if (folder.empty() && vtkv::posix_env()->file_system_info(file, &info).ok() && !info.device.empty()) {
    folder = folder_at("/sys/class/block/" + info.device);  // btrfs numbers its subvolumes itself: what is mounted
  }
  return folder;
}

int numa_node_of(fs::path folder) {
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    if (const auto line = read_line(folder / "numa_node")) {
      return std::atoi(line->c_str());
    }
  }
  return -1;
}

void add_physical(const fs::path& folder, HostDevices* devices) {
  const std::string name = folder.filename();
  devices->names.insert(name);
  if (const int node = numa_node_of(folder); node >= 0) {
    devices->numa_nodes.insert(node);
  } else {
    devices->without_numa_node.insert(name);
  }
}

void add_device(fs::path folder, int depth, HostDevices* devices) {
  if (folder.empty() || depth > kDepthMax) {
    return;
  }
  std::error_code error;
  if (fs::exists(folder / "partition", error)) {
    folder = folder.parent_path();
  }
  if (const auto backing = read_line(folder / "loop/backing_file")) {
    const fs::path below = device_folder_of(*backing);
    if (!below.empty()) {
      add_device(below, depth + 1, devices);
      return;
    }
  }
  bool composed = false;
  for (const auto& slave : fs::directory_iterator(folder / "slaves", error)) {
    composed = true;
    const fs::path below = fs::canonical(slave.path(), error);
    if (!error) {
      add_device(below, depth + 1, devices);
    }
  }
  if (!composed) {
    add_physical(folder, devices);
  }
}

}  // namespace

HostDevices find_host_devices(const std::string& directory) {
  HostDevices devices;
  add_device(device_folder_of(directory), 0, &devices);
  return devices;
}

}  // namespace swimstore
