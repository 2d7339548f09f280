// SPDX-License-Identifier: LGPL-2.1-or-later
// What has failed in the background, when it is tried again, and who is told.
//
// The time between two attempts doubles. Where there is no space it is short: space comes back, and the log grows until
// it does. What cannot be read stays so, mostly, and each attempt reads a lot.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "vtkv/background_error.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class BackgroundErrors {
 public:
  // `tell`: when something begins to fail, fails in another way, and when that is over. May be empty.
  BackgroundErrors(Env* env, std::function<void(const BackgroundError&)> tell) : m_env(env), m_tell(std::move(tell)) {}

  // What became of an attempt.
  void note(const BackgroundWork& work, const Status& status) EXCLUDES(m_lock);
  // How long to wait before the next; 0: it is due, or nothing has failed.
  std::chrono::microseconds wait(const BackgroundWork& work) const;
  // Somebody waits for it: the next attempt is due at once.
  void hurry(const BackgroundWork& work);
  // Of the newest attempt.
  Status status(const BackgroundWork& work) const;
  // What fails at present.
  std::vector<BackgroundError> current() const;
  uint64_t failures() const { return m_failures.load(std::memory_order_relaxed); }  // ever

 private:
  struct State {
    Status status;
    uint64_t attempts = 0;
    uint64_t due_us = 0;
  };

  Env* const m_env;
  const std::function<void(const BackgroundError&)> m_tell;
  std::atomic<uint64_t> m_failures{0};
  mutable Mutex m_lock;
  std::atomic<uint32_t> m_failing{0};  // how many do; changed under the lock
  std::map<const BackgroundWork*, State> m_states GUARDED_BY(m_lock);  // of what fails
};

}  // namespace vtkv
