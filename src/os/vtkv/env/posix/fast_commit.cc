// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/fast_commit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {

namespace {

// Empty where there is no such file.
std::string read_text(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

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

bool shows_fast_commit(const std::string& options) {
  std::istringstream lines(options);
  for (std::string line; std::getline(lines, line);) {
    if (line == "fc_debug_force") {
      return true;
    }
  }
  return false;
}

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

std::string find_fast_commit(const std::string& file) {
  struct statfs magic{};
  struct stat status{};
  if (::statfs(file.c_str(), &magic) != 0 || magic.f_type != EXT4_SUPER_MAGIC || ::stat(file.c_str(), &status) != 0) {
    return "";
  }
  const std::string device = block_device_name(status.st_dev);
  const std::string shown = "/proc/fs/ext4/" + device;
  const std::string counts = read_text(shown + "/fc_info");
  bool found = shows_fast_commit(read_text(shown + "/options")) || counts_fast_commits(counts);
  // Without that file it is a kernel that has no fast commits, or does not tell.
  for (int i = 0; i < kProbes && !found && !counts.empty() && touch_and_sync(file); ++i) {
    found = counts_fast_commits(read_text(shown + "/fc_info"));
  }
  return found ? device : "";
}

}  // namespace vtkv
