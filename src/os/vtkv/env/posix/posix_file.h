// SPDX-License-Identifier: LGPL-2.1-or-later
// A file of the host. See File in env.h for the contract.
#pragma once

#include <string>

#include "vtkv/env.h"

namespace vtkv {

class PosixFile : public File {
 public:
  static Status open(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file);
  ~PosixFile() override;

  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  const std::string& path() const override { return m_path; }
  Status read(uint64_t offset, size_t length, char* destination) override;
  Status write(uint64_t offset, const char* source, size_t length) override;
  Status sync() override;
  Status size(uint64_t* bytes) override;
  Status truncate(uint64_t bytes) override;
  Status allocate(uint64_t offset, uint64_t length) override;
  Status write_zeros(uint64_t offset, uint64_t length) override;
  Status punch_hole(uint64_t offset, uint64_t length) override;
  Status map_space(FileSpace* space) override;

  // A descriptor, or -1 with errno. `flags`: of open(2), none about creation. No symbolic link is followed at the end
  // of the path.
  enum class Creation { never, when_missing, always };
  static int open_descriptor(const std::string& path, int flags, Creation creation);
  static Status open_failed(int error_number, const std::string& path);
  // What root has just made in somebody else's directory becomes that one's, so that a daemon of theirs can open it.
  static void give_to_owner_of_directory(int descriptor, const std::string& path);

  int descriptor() const { return m_descriptor; }
  // "cannot <action> <path> at <offset>: <reason>"
  Status error(int error_number, const char* action, uint64_t offset) const;
  Status past_end(uint64_t offset) const;

 private:
  PosixFile(int descriptor, std::string path) : m_descriptor(descriptor), m_path(std::move(path)) {}
  Status change_allocation(int mode, uint64_t offset, uint64_t length, const char* action);

  const int m_descriptor;
  const std::string m_path;
};

}  // namespace vtkv
