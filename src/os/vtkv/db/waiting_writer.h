// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a thread waits in DB::write, with a lock and a signal of its own: shared ones would wake, or hold up, all
// writers for every one. Kept for the next writer, so that a notification may still be under way when this one has
// gone on.
#pragma once

#include <memory>

#include "vtkv/env.h"
#include "vtkv/status.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

struct WaitingWriter {
  explicit WaitingWriter(Env* env) : signal(env->new_signal()) {}

  Mutex lock;
  const std::unique_ptr<Signal> signal;
  bool done GUARDED_BY(lock) = false;
  Status result GUARDED_BY(lock);
};

}  // namespace vtkv
