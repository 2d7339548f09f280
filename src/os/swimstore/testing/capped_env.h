// SPDX-License-Identifier: LGPL-2.1-or-later
// A host file system that says it holds no more than so many bytes. What is asked of it all the same is given, so it
// bounds those who look first.
//
// Thread-safe, as the Env below it, which outlives it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "vtkv/env/env_wrapper.h"

namespace swimstore {

class CappedEnv : public vtkv::EnvWrapper {
 public:
  // directory: all that is there counts.
  CappedEnv(vtkv::Env* base, std::string directory, uint64_t capacity_bytes)
      : EnvWrapper(base), m_directory(std::move(directory)), m_capacity_bytes(capacity_bytes) {}

  void set_capacity(uint64_t bytes) { m_capacity_bytes = bytes; }
  uint64_t used_bytes() const;

  vtkv::Status file_system_info(const std::string& path, vtkv::FileSystemInfo* info) override;

 private:
  const std::string m_directory;
  std::atomic<uint64_t> m_capacity_bytes;
};

}  // namespace swimstore
