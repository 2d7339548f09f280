// A host file system that says it holds no more than so many bytes. What is asked of it all the same is given, so it
// bounds those who look first.
//
// Thread-safe, as the Env below it, which outlives it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "vtkv/env/env.h"

namespace swimstore {

class CappedEnv : public vtkv::Env {
 public:
  // directory: all that is there counts.
  CappedEnv(vtkv::Env* base, std::string directory, uint64_t capacity_bytes)
      : m_base(base), m_directory(std::move(directory)), m_capacity_bytes(capacity_bytes) {}

  void set_capacity(uint64_t bytes) { m_capacity_bytes = bytes; }
  uint64_t used_bytes() const;

  vtkv::Status open_file(const std::string& path, const vtkv::OpenOptions& options,
                         std::unique_ptr<vtkv::File>* file) override {
    return m_base->open_file(path, options, file);
  }
  vtkv::Status create_directory(const std::string& path) override { return m_base->create_directory(path); }
  vtkv::Status sync_directory(const std::string& path) override { return m_base->sync_directory(path); }
  vtkv::Status list_directory(const std::string& path, std::vector<std::string>* names) override {
    return m_base->list_directory(path, names);
  }
  vtkv::Status rename_file(const std::string& from, const std::string& to) override {
    return m_base->rename_file(from, to);
  }
  vtkv::Status remove_file(const std::string& path) override { return m_base->remove_file(path); }
  bool exists(const std::string& path) override { return m_base->exists(path); }
  vtkv::Status file_system_info(const std::string& path, vtkv::FileSystemInfo* info) override;
  vtkv::Status lock_file(const std::string& path, std::unique_ptr<vtkv::FileLock>* lock) override {
    return m_base->lock_file(path, lock);
  }
  std::unique_ptr<vtkv::Worker> start_worker(std::string name, unsigned io_depth, vtkv::Worker::Step step) override {
    return m_base->start_worker(std::move(name), io_depth, std::move(step));
  }
  std::unique_ptr<vtkv::Signal> new_signal() override { return m_base->new_signal(); }
  uint64_t now_us() override { return m_base->now_us(); }
  uint64_t wall_clock_us() override { return m_base->wall_clock_us(); }
  uint64_t random_u64() override { return m_base->random_u64(); }

 private:
  vtkv::Env* const m_base;
  const std::string m_directory;
  std::atomic<uint64_t> m_capacity_bytes;
};

}  // namespace swimstore
