// SPDX-License-Identifier: LGPL-2.1-or-later
// A file of a SimEnv. Internal to it.
#pragma once

#include "vtkv/testing/sim_env.h"

namespace vtkv {

class SimFile : public File {
 public:
  SimFile(SimEnv* env, std::string path, uint64_t inode, const OpenOptions& options);
  ~SimFile() override;
  SimFile(const SimFile&) = delete;
  SimFile& operator=(const SimFile&) = delete;

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

  uint64_t inode() const { return m_inode; }
  Status read_vector(uint64_t offset, const std::vector<iovec>& buffers);
  // What the host refuses: a read-only file, an unaligned direct write.
  Status check_write(uint64_t offset, const std::vector<iovec>& buffers) const;
  SimOp write_op(uint64_t offset, const std::vector<iovec>& buffers) const;

 private:
  const SimInode& content() const;
  Status check_alignment(uint64_t offset, const std::vector<iovec>& buffers) const;
  Status change_space(SimOp::Kind kind, SimCall call, uint64_t offset, uint64_t length);

  SimEnv* const m_env;
  const std::string m_path;
  const uint64_t m_inode;
  const bool m_is_on_other;
  const OpenOptions m_options;
};

}  // namespace vtkv
