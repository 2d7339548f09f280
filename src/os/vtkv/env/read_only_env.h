// SPDX-License-Identifier: LGPL-2.1-or-later
// An Env through which nothing can be changed: every file opens read-only, and whatever would make, rename,
// remove or lock for writing is refused. It makes "changes nothing on disk" a property of the door instead
// of a promise of everybody behind it.
#pragma once

#include "vtkv/env.h"

namespace vtkv {

// `base` outlives it.
class ReadOnlyEnv final : public Env {
 public:
  explicit ReadOnlyEnv(Env* base) : m_base(base) {}

  Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) override;
  Status create_directory(const std::string& path) override { return refuse("create directory", path); }
  Status sync_directory(const std::string& path) override { return refuse("sync directory", path); }
  Status list_directory(const std::string& path, std::vector<std::string>* names) override {
    return m_base->list_directory(path, names);
  }
  Status rename_file(const std::string& from, const std::string&) override { return refuse("rename", from); }
  Status remove_file(const std::string& path) override { return refuse("remove", path); }
  bool exists(const std::string& path) override { return m_base->exists(path); }
  Status file_system_info(const std::string& path, FileSystemInfo* info) override {
    return m_base->file_system_info(path, info);
  }
  // Fine without a lock where there can be no writer: no lock file, or a read-only file system.
  Status lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) override;

  // Workers write: a reader starts none.
  std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) override;
  std::unique_ptr<Signal> new_signal() override { return m_base->new_signal(); }

  uint64_t now_us() override { return m_base->now_us(); }
  uint64_t wall_clock_us() override { return m_base->wall_clock_us(); }
  uint64_t random_u64() override { return m_base->random_u64(); }
  unsigned processors() override { return m_base->processors(); }

 private:
  static Status refuse(std::string_view what, const std::string& path);

  Env* const m_base;
};

}  // namespace vtkv
