// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/flush_obstacle.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace vtkv {

namespace {

namespace fs = std::filesystem;

constexpr uint32_t kExtentsAtOnce = 512;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : m_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (m_fd >= 0) {
      ::close(m_fd);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return m_fd; }

 private:
  const int m_fd;
};

// Does another file own some of its blocks, too? A write there goes to new ones. A file system that does not tell has
// no such files.
bool shares_blocks(int fd) {
  std::vector<char> memory(sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent));
  auto* const map = reinterpret_cast<fiemap*>(memory.data());
  for (uint64_t start = 0;;) {
    std::memset(memory.data(), 0, memory.size());
    map->fm_start = start;
    map->fm_length = FIEMAP_MAX_OFFSET - start;
    map->fm_extent_count = kExtentsAtOnce;
    if (::ioctl(fd, FS_IOC_FIEMAP, map) != 0 || map->fm_mapped_extents == 0) {
      return false;
    }
    for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      if (extent.fe_flags & FIEMAP_EXTENT_SHARED) {
        return true;
      }
      start = extent.fe_logical + extent.fe_length;
    }
    if (map->fm_extents[map->fm_mapped_extents - 1].fe_flags & FIEMAP_EXTENT_LAST) {
      return false;
    }
  }
}

bool journals_data(int fd) {
  int flags = 0;
  return ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_JOURNAL_DATA_FL) != 0;
}

bool is_realtime(int fd) {
  fsxattr attributes{};
  return ::ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0 && (attributes.fsx_xflags & FS_XFLAG_REALTIME) != 0;
}

Status check(const fs::directory_entry& entry, dev_t device, std::string* obstacle) {
  std::error_code error;
  const std::string path = entry.path().string();
  if (!entry.is_regular_file(error) && !entry.is_directory(error)) {
    return {};
  }
  const OpenFile file(path);
  struct stat status{};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0) {
    // Somebody else's, or the store cannot open it either, and says so.
    const bool is_refused = errno == EACCES || errno == EPERM;
    return errno == ENOENT || is_refused ? Status() : Status::from_errno(errno, "cannot look at " + path);
  }
  if (status.st_dev != device) {
    *obstacle = path + " lies on another file system";
  } else if (S_ISREG(status.st_mode) && journals_data(file.fd())) {
    *obstacle = path + " has its data journaled (chattr -j, and copy it)";
  } else if (S_ISREG(status.st_mode) && is_realtime(file.fd())) {
    *obstacle = path + " lies on the realtime device";
  } else if (S_ISREG(status.st_mode) && shares_blocks(file.fd())) {
    *obstacle = path + " shares blocks with another file, a copy by reflink (copy it with cp --reflink=never)";
  }
  return {};
}

}  // namespace

Status find_flush_obstacle(const std::string& directory, std::string* obstacle) {
  obstacle->clear();
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) {
    return Status::from_errno(errno, "cannot look at " + directory);
  }
  std::error_code error;
  const auto options = fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(directory, options, error), end; !error && it != end; it.increment(error)) {
    if (it.depth() == 0 && it->path().filename() == "lost+found") {
      it.disable_recursion_pending();  // the host's, and root's
      continue;
    }
    VTKV_RETURN_IF_ERROR(check(*it, status.st_dev, obstacle));
    if (!obstacle->empty()) {
      return {};
    }
  }
  return error ? Status::from_errno(error.value(), "cannot look at " + directory) : Status();
}

}  // namespace vtkv
