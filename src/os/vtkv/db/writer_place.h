// Where a thread waits in DB::write, with a lock and a signal of its own: shared ones would wake, or hold up, all
// writers for every one. Kept for the next writer, so that a notification may still be under way when this one has
// gone on.
#pragma once

#include <memory>
#include <mutex>

#include "vtkv/env/env.h"
#include "vtkv/status.h"

namespace vtkv {

struct WriterPlace {
  explicit WriterPlace(Env* env) : signal(env->new_signal()) {}

  std::mutex lock;
  const std::unique_ptr<Signal> signal;
  bool done = false;  // the rest under the lock
  Status result;
};

}  // namespace vtkv
