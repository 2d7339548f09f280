// SPDX-License-Identifier: LGPL-2.1-or-later
// Where threads wait in DB::write, each with a lock and a signal of its own: shared ones would wake, or hold up, all
// writers for every one. They are kept for the next writers, so that a notification may still be under way when this
// one has gone on.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/db.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

struct WaitingWriter {
  explicit WaitingWriter(Env* env) : signal(env->new_signal()) {}

  Mutex lock;
  const std::unique_ptr<Signal> signal;
  bool done GUARDED_BY(lock) = false;
  Status result GUARDED_BY(lock);
};

// Those that nobody waits in. Thread-safe.
class IdleWriters {
 public:
  explicit IdleWriters(Env* env) : m_env(env) {}

  std::unique_ptr<WaitingWriter> take() EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    if (m_idle.empty()) {
      m_idle.push_back(std::make_unique<WaitingWriter>(m_env));
    }
    std::unique_ptr<WaitingWriter> waiting = std::move(m_idle.back());
    m_idle.pop_back();
    return waiting;
  }
  void give_back(std::unique_ptr<WaitingWriter> waiting) EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    m_idle.push_back(std::move(waiting));
  }

 private:
  Env* const m_env;
  Mutex m_lock;
  std::vector<std::unique_ptr<WaitingWriter>> m_idle GUARDED_BY(m_lock);
};

// The submission of a thread that waits for it, which has it on its stack.
class WaitingSubmission final : public Submission {
 public:
  explicit WaitingSubmission(IdleWriters* idle) : m_idle(idle), m_waiting(idle->take()) {}
  ~WaitingSubmission() override { m_idle->give_back(std::move(m_waiting)); }

  // This object may be gone as soon as the writer can see that it is done.
  void durable(const Status& status) override {
    WaitingWriter* const waiting = m_waiting.get();
    {
      MutexLock lock(waiting->lock);
      waiting->result = status;
      waiting->done = true;
    }
    waiting->signal->notify_all();
  }
  Status wait() {
    WaitingWriter& waiting = *m_waiting;
    MutexLock lock(waiting.lock);
    waiting.signal->wait(lock, [&waiting]() REQUIRES(waiting.lock) { return waiting.done; });
    waiting.done = false;  // for the next one
    return waiting.result;
  }

 private:
  IdleWriters* const m_idle;
  std::unique_ptr<WaitingWriter> m_waiting;
};

}  // namespace vtkv
