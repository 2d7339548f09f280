// SPDX-License-Identifier: LGPL-2.1-or-later
// A host whose device can be stopped: what workers ask of it meanwhile stays undone, as with a disk that hangs, and is
// done when it goes on, or fails. (All that a commit waits for is asked by a worker; direct calls of File go through.)
//
// Thread-safe, as the Env below it, which outlives it.
#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "vtkv/env/env_wrapper.h"

namespace swimstore {

class StoppableEnv final : public vtkv::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;

  void stop() { m_stopped = true; }
  void go_on();
  // Goes on, but whatever workers ask of it fails from now on, and what it held.
  void fail();
  // Requests that a stopped device has not begun.
  uint64_t held() const { return m_held; }

  std::unique_ptr<vtkv::Worker> start_worker(std::string name, unsigned io_depth, vtkv::Worker::Step step) override;

 private:
  class Queue;
  class StoppableWorker;

  std::atomic<bool> m_stopped{false};
  std::atomic<bool> m_failing{false};
  std::atomic<uint64_t> m_held{0};
  std::mutex m_workers_lock;
  std::set<vtkv::Worker*> m_workers;
};

}  // namespace swimstore
