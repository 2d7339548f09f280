// SPDX-License-Identifier: LGPL-2.1-or-later
// The I/O queue of a posix worker, together with what the worker sleeps in.
//
// One thread, the worker's, calls everything but wake(). Two implementations: IoRing (io_uring) and
// BlockingQueue (ordinary system calls; also for workers without asynchronous I/O).
#pragma once

#include <chrono>
#include <optional>

#include "vtkv/env.h"

namespace vtkv {

class WorkerQueue : public IoQueue {
 public:
  // Starts what has been submitted, without waiting.
  virtual void flush() = 0;
  // Starts what has been submitted, then sleeps until a request completes, wake() was called since the
  // last accept_wakes(), or the time is over. Returns at once when completed requests are not reaped yet.
  virtual void wait(std::optional<std::chrono::microseconds> limit) = 0;
  // What was woken for is about to be looked at: wakes from now on end the next wait.
  virtual void accept_wakes() = 0;
  // Waits for every request in flight (results are set; nobody reaps them) and gives back what the
  // kernel holds for the queue. Nothing but wake(), which does nothing then, may follow.
  virtual void shut_down() = 0;
  // From any thread.
  virtual void wake() = 0;
};

}  // namespace vtkv
