// SPDX-License-Identifier: LGPL-2.1-or-later
// An Env that passes everything on to another one, for those that change a part of what it does.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vtkv/env.h"

namespace vtkv {

// `base` outlives it.
class EnvWrapper : public Env {
 public:
  explicit EnvWrapper(Env* base) : m_base(base) {}

  Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) override {
    return m_base->open_file(path, options, file);
  }
  Status create_directory(const std::string& path) override { return m_base->create_directory(path); }
  Status sync_directory(const std::string& path) override { return m_base->sync_directory(path); }
  Status list_directory(const std::string& path, std::vector<std::string>* names) override {
    return m_base->list_directory(path, names);
  }
  Status rename_file(const std::string& from, const std::string& to) override { return m_base->rename_file(from, to); }
  Status remove_file(const std::string& path) override { return m_base->remove_file(path); }
  bool exists(const std::string& path) override { return m_base->exists(path); }
  Status file_system_info(const std::string& path, FileSystemInfo* info) override {
    return m_base->file_system_info(path, info);
  }
  Status lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) override {
    return m_base->lock_file(path, lock);
  }
  std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) override {
    return m_base->start_worker(std::move(name), io_depth, std::move(step));
  }
  std::unique_ptr<Signal> new_signal() override { return m_base->new_signal(); }
  uint64_t now_us() override { return m_base->now_us(); }
  uint64_t wall_clock_us() override { return m_base->wall_clock_us(); }
  uint64_t random_u64() override { return m_base->random_u64(); }
  unsigned processors() override { return m_base->processors(); }

 protected:
  Env* const m_base;
};

}  // namespace vtkv
