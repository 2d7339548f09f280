// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/directory_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "swimstore/directory/store_directory.h"

namespace swimstore {

namespace {

bool is_empty(const std::string& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator begin(directory, error);
  return !error && std::all_of(begin, std::filesystem::directory_iterator(),
                               [](const auto& entry) { return entry.path().filename() == "lost+found"; });
}

}  // namespace

void give_to_owner_of_store(const std::string& directory, const std::string& store) {
  struct stat owner{};
  std::string path = directory;
  if (::geteuid() != 0 || !StoreDirectory(vtkv::posix_env(), store).normalize_metadata_path(&path).ok() ||
      ::stat(store.c_str(), &owner) != 0) {
    return;
  }
  (void)::mkdir(path.c_str(), 0700);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    return;
  }
  if (is_empty(path)) {
    (void)!::fchown(descriptor, owner.st_uid, owner.st_gid);
  }
  ::close(descriptor);
}

}  // namespace swimstore
