// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/fast_commit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
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

// A sync with something to commit, of a file that is gone when it is closed.
Status sync_nameless_file(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Status::from_errno(errno, "cannot make a nameless file in " + directory);
  }
  const char byte = 0;
  const bool synced = ::pwrite(fd, &byte, 1, 0) == 1 && ::fdatasync(fd) == 0;
  const int error_number = errno;
  ::close(fd);
  return synced ? Status() : Status::from_errno(error_number, "cannot sync a nameless file in " + directory);
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
    if (words >> count >> what && count > 0 && (what == "commits" || what == "ineligible")) {
      return true;
    }
  }
  return false;
}

Status find_fast_commit(const std::string& directory, bool* found) {
  *found = false;
  struct statfs magic{};
  struct stat status{};
  if (::statfs(directory.c_str(), &magic) != 0 || ::stat(directory.c_str(), &status) != 0) {
    return Status::from_errno(errno, "cannot ask for the file system of " + directory);
  }
  if (magic.f_type != EXT4_SUPER_MAGIC) {
    return {};
  }
  const std::string shown = "/proc/fs/ext4/" + block_device_name(status.st_dev);
  const std::string counts = read_text(shown + "/fc_info");
  if (shows_fast_commit(read_text(shown + "/options")) || counts_fast_commits(counts)) {
    *found = true;
    return {};
  }
  if (counts.empty()) {
    return {};  // a kernel without fast commits
  }
  VTKV_RETURN_IF_ERROR(sync_nameless_file(directory));
  *found = counts_fast_commits(read_text(shown + "/fc_info"));
  return {};
}

}  // namespace vtkv
