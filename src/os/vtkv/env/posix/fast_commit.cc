// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/fast_commit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>
#include <string>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {

namespace {

constexpr int kProbes = 3;  // the commit after one that was not eligible is

// A sync with something to commit.
bool touch_and_sync(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    return false;
  }
  const bool synced = ::futimens(fd, nullptr) == 0 && ::fsync(fd) == 0;
  ::close(fd);
  return synced;
}

}  // namespace

bool shows_fast_commit(const std::string& options) { return has_option(options, "fc_debug_force"); }

// fc stats:
// 3 commits
// 1 ineligible
// …
bool counts_fast_commits(const std::string& fc_info) {
  std::istringstream lines(fc_info);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    uint64_t count = 0;
    std::string what;
    if (words >> count >> what && what == "commits") {
      return count > 0;
    }
  }
  return false;
}

bool makes_fast_commits(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    return false;
  }
  std::string counts = read_ext4_file(status.st_dev, "fc_info");
  // Without that file it is a kernel that has no fast commits, or does not tell.
  for (int i = 0; i < kProbes && !counts.empty() && !counts_fast_commits(counts) && touch_and_sync(file); ++i) {
    counts = read_ext4_file(status.st_dev, "fc_info");
  }
  return counts_fast_commits(counts);
}

std::string find_fast_commit(const std::string& file) {
  struct statfs magic{};
  struct stat status{};
  if (::statfs(file.c_str(), &magic) != 0 || magic.f_type != EXT4_SUPER_MAGIC || ::stat(file.c_str(), &status) != 0) {
    return "";
  }
  const bool found = shows_fast_commit(read_ext4_file(status.st_dev, "options")) || makes_fast_commits(file);
  return found ? block_device_name(status.st_dev) : "";
}

}  // namespace vtkv
