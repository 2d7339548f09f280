// SPDX-License-Identifier: LGPL-2.1-or-later
// A worker that is a thread. See Worker in env.h for the contract.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "vtkv/env/worker_queue.h"

namespace vtkv {

class PosixWorker : public Worker {
 public:
  // Called on the worker's own thread: io_uring wants its one submitter to have created the ring.
  using MakeQueue = std::function<std::unique_ptr<WorkerQueue>()>;

  PosixWorker(const std::string& name, MakeQueue make_queue, Step step);
  ~PosixWorker() override;

  void wake() override { m_queue->wake(); }

 private:
  void run();

  const Step m_step;
  std::atomic<bool> m_stopping{false};
  std::unique_ptr<WorkerQueue> m_queue;  // set before the constructor returns
  std::thread m_thread;
};

}  // namespace vtkv
