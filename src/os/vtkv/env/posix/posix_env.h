// SPDX-License-Identifier: LGPL-2.1-or-later
// The Env on the host. Programs use posix_env() of env.h, which is one of these for the whole process.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "vtkv/env.h"
#include "vtkv/env/posix/file_system_info_cache.h"
#include "vtkv/env/posix/held_locks.h"
#include "vtkv/env/worker_queue.h"

namespace vtkv {

class PosixEnv : public Env {
 public:
  // Without io_uring, workers do their I/O with ordinary system calls; so they do, with one line on
  // standard error, when the host refuses io_uring (ring_refusal.h).
  // A lock outlives the process that was killed with it until the kernel has ended its last requests:
  // lock_file() waits `lock_patience` for that before it answers Code::busy.
  explicit PosixEnv(bool use_io_uring, std::chrono::milliseconds lock_patience = std::chrono::seconds(3))
      : m_use_io_uring(use_io_uring), m_lock_patience(lock_patience) {}

  Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) override;
  Status create_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status list_directory(const std::string& path, std::vector<std::string>* names) override;
  Status rename_file(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  bool exists(const std::string& path) override;
  Status file_system_info(const std::string& path, FileSystemInfo* info) override;
  Status lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) override;

  std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) override;
  std::unique_ptr<Signal> new_signal() override;

  uint64_t now_us() override;
  uint64_t wall_clock_us() override;
  uint64_t random_u64() override;
  unsigned processors() override;

 private:
  class Lock;
  std::unique_ptr<WorkerQueue> make_queue(unsigned io_depth);

  const bool m_use_io_uring;
  const std::chrono::milliseconds m_lock_patience;
  HeldLocks m_locks;
  FileSystemInfoCache m_file_systems{&m_locks};
};

}  // namespace vtkv
