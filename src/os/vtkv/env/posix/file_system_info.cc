// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace vtkv {

namespace {

namespace fs = std::filesystem;

constexpr long kXfsMagic = 0x58465342;  // "XFSB"; linux/magic.h of older hosts lacks it

FileSystemKind kind_of(long magic) {
  switch (magic) {
    case EXT4_SUPER_MAGIC:
      return FileSystemKind::ext4;
    case kXfsMagic:
      return FileSystemKind::xfs;
    case BTRFS_SUPER_MAGIC:
      return FileSystemKind::btrfs;
    default:
      return FileSystemKind::other;
  }
}

FileSystemInfo space_of(const struct statfs& magic, const struct statvfs& space) {
  FileSystemInfo info;
  info.kind = kind_of(static_cast<long>(magic.f_type));
  info.total_bytes = static_cast<uint64_t>(space.f_blocks) * space.f_frsize;
  info.available_bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  info.read_only = (space.f_flag & ST_RDONLY) != 0;
  return info;
}

std::string first_line(const fs::path& path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

// mountinfo writes a space, a tab, a newline and a backslash as \ooo.
std::string unescape(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool is_below(const std::string& path, const std::string& folder) {
  if (folder == "/") {
    return true;
  }
  return path.compare(0, folder.size(), folder) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_rotational(const fs::path& block) {
  std::error_code error;
  // A mapped or striped device spins when anything below it does.
  for (fs::directory_iterator slave(block / "slaves", error), end; !error && slave != end; slave.increment(error)) {
    fs::path below = fs::canonical(slave->path(), error);
    if (!error && fs::exists(below / "partition", error)) {
      below = below.parent_path();
    }
    if (!error && is_rotational(below)) {
      return true;
    }
  }
  return first_line(block / "queue" / "rotational") == "1";
}

void describe_device(dev_t device, FileSystemInfo* info) {
  std::error_code error;
  fs::path block =
      fs::canonical("/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)), error);
  if (error) {
    return;
  }
  if (fs::exists(block / "partition", error)) {
    block = block.parent_path();
  }
  info->device = block.filename().string();
  info->rotational = is_rotational(block);
}

}  // namespace

Mount find_mount(std::istream& mountinfo, const std::string& path) {
  Mount best;
  std::string line;
  while (std::getline(mountinfo, line)) {
    std::istringstream fields(line);
    std::string ignored;
    std::string point;
    fields >> ignored >> ignored >> ignored >> ignored >> point;
    point = unescape(point);
    if (!is_below(path, point) || point.size() < best.point.size()) {
      continue;
    }
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) {
      continue;
    }
    std::istringstream tail(line.substr(separator + 3));
    Mount mount;
    tail >> mount.type >> mount.source >> mount.options;
    best = {point, mount.type, unescape(mount.source), mount.options};
  }
  return best;
}

bool has_option(const std::string& options, std::string_view option) {
  for (size_t at = 0; at < options.size();) {
    const size_t end = std::min(options.find_first_of(",\n", at), options.size());
    if (options.compare(at, end - at, option) == 0) {
      return true;
    }
    at = end + 1;
  }
  return false;
}

bool journals_data(const std::string& options) { return has_option(options, "data=journal"); }

std::string_view to_string(FileSystemKind kind) {
  switch (kind) {
    case FileSystemKind::ext4:
      return "ext4";
    case FileSystemKind::xfs:
      return "xfs";
    case FileSystemKind::btrfs:
      return "btrfs";
    case FileSystemKind::other:
      return "other";
  }
  return "other";
}

Status read_file_system_space(const std::string& path, FileSystemInfo* info, uint64_t* device) {
  struct statfs magic{};
  struct statvfs space{};
  struct stat status{};
  if (::statfs(path.c_str(), &magic) != 0 || ::statvfs(path.c_str(), &space) != 0 ||
      ::stat(path.c_str(), &status) != 0) {
    return Status::from_errno(errno, "cannot ask for the file system of " + path);
  }
  *info = space_of(magic, space);
  *device = status.st_dev;
  return {};
}

Status read_file_system_space(int descriptor, const std::string& path, FileSystemInfo* info, uint64_t* device) {
  struct statfs magic{};
  struct statvfs space{};
  struct stat status{};
  if (::fstatfs(descriptor, &magic) != 0 || ::fstatvfs(descriptor, &space) != 0 || ::fstat(descriptor, &status) != 0) {
    return Status::from_errno(errno, "cannot ask for the file system of " + path);
  }
  *info = space_of(magic, space);
  *device = status.st_dev;
  return {};
}

void describe_file_system(const std::string& path, uint64_t device, FileSystemInfo* info) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  std::ifstream mountinfo("/proc/self/mountinfo");
  const Mount mount = find_mount(mountinfo, error ? path : resolved.string());
  info->mount_point = mount.point;
  info->single_flush =
      info->kind == FileSystemKind::xfs || (info->kind == FileSystemKind::ext4 && !journals_data(mount.options) &&
                                            !journals_data(read_ext4_file(device, "options")));
  // btrfs numbers its subvolumes itself: ask the device that is mounted.
  struct stat source{};
  if (major(device) == 0 && ::stat(mount.source.c_str(), &source) == 0 && S_ISBLK(source.st_mode)) {
    device = source.st_rdev;
  }
  describe_device(device, info);
}

std::string block_device_name(uint64_t device) {
  std::error_code error;
  const fs::path block =
      fs::canonical("/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)), error);
  return error ? "" : block.filename().string();
}

std::string read_ext4_file(uint64_t device, const std::string& file) {
  std::ifstream stream("/proc/fs/ext4/" + block_device_name(device) + "/" + file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Status read_file_system_info(const std::string& path, FileSystemInfo* info) {
  uint64_t device = 0;
  VTKV_RETURN_IF_ERROR(read_file_system_space(path, info, &device));
  describe_file_system(path, device, info);
  return {};
}

}  // namespace vtkv
