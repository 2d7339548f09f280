// A host whose device can be stopped: what workers ask of it meanwhile stays undone, as with a disk that hangs, and is
// done when it goes on, or fails. (All that a commit waits for is asked by a worker; direct calls of File go through.)
//
// Thread-safe, as the Env below it, which outlives it.
#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "vtkv/env/env.h"

namespace swimstore {

class StoppableEnv final : public vtkv::Env {
 public:
  explicit StoppableEnv(vtkv::Env* base) : m_base(base) {}

  void stop() { m_stopped = true; }
  void go_on();
  // Goes on, but whatever workers ask of it fails from now on, and what it held.
  void fail();
  // Requests that a stopped device has not begun.
  uint64_t held() const { return m_held; }

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
  vtkv::Status file_system_info(const std::string& path, vtkv::FileSystemInfo* info) override {
    return m_base->file_system_info(path, info);
  }
  vtkv::Status lock_file(const std::string& path, std::unique_ptr<vtkv::FileLock>* lock) override {
    return m_base->lock_file(path, lock);
  }
  std::unique_ptr<vtkv::Worker> start_worker(std::string name, unsigned io_depth, vtkv::Worker::Step step) override;
  std::unique_ptr<vtkv::Signal> new_signal() override { return m_base->new_signal(); }
  uint64_t now_us() override { return m_base->now_us(); }
  uint64_t wall_clock_us() override { return m_base->wall_clock_us(); }
  uint64_t random_u64() override { return m_base->random_u64(); }

 private:
  class Queue;
  class StoppableWorker;

  vtkv::Env* const m_base;
  std::atomic<bool> m_stopped{false};
  std::atomic<bool> m_failing{false};
  std::atomic<uint64_t> m_held{0};
  std::mutex m_workers_lock;
  std::set<vtkv::Worker*> m_workers;
};

}  // namespace swimstore
