// SPDX-License-Identifier: LGPL-2.1-or-later
// The I/O queue of a worker on a host that refuses io_uring (an old kernel, a seccomp profile), and the
// sleeping place of a worker that does no asynchronous I/O.
//
// Requests run with ordinary system calls, one after the other, when the worker has nothing else to do:
// correct, slow. Nothing outlives the process, so the store's lock needs no help here.
#pragma once

#include <deque>
#include <vector>

#include "vtkv/env/worker_queue.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class BlockingQueue : public WorkerQueue {
 public:
  // depth 0: submit is a programming error.
  explicit BlockingQueue(unsigned depth) : m_depth(depth) {}

  void submit(IoRequest* request) override;
  void reap(std::vector<IoRequest*>* completed) override;
  size_t in_flight() const override { return m_pending.size() + m_completed.size(); }
  void flush() override;
  void wait(std::optional<std::chrono::microseconds> limit) override;
  void accept_wakes() override;
  void shut_down() override { flush(); }
  void wake() override;

 private:
  const unsigned m_depth;
  // The worker's own.
  std::deque<IoRequest*> m_pending;
  std::vector<IoRequest*> m_completed;

  Mutex m_mutex;
  ConditionVariable m_condition;
  bool m_woken GUARDED_BY(m_mutex) = false;
};

}  // namespace vtkv
