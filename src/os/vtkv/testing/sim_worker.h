// SPDX-License-Identifier: LGPL-2.1-or-later
// Workers, their queues and their waiters in a SimEnv. Internal to it.
#pragma once

#include <deque>
#include <optional>

#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fiber.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class SimQueue : public IoQueue {
 public:
  SimQueue(SimEnv* env, unsigned depth) : m_env(env), m_depth(depth) {}

  void submit(IoRequest* request) override;
  void reap(std::vector<IoRequest*>* completed) override;
  size_t in_flight() const override { return m_started.size() + m_backlog.size() + m_completed.size(); }

  size_t executable() const { return m_started.size(); }
  bool has_completed() const { return !m_completed.empty(); }
  // Executes the chosen one of those that are at the disk.
  void execute(size_t chosen);

 private:
  // A request and its record in the trace.
  struct Entry {
    IoRequest* request;
    size_t record;
  };

  void start(IoRequest* request);
  Status run(const Entry& entry);

  SimEnv* const m_env;
  const unsigned m_depth;
  std::vector<Entry> m_started;
  std::deque<IoRequest*> m_backlog;
  std::vector<Entry> m_completed;
};

class SimWorker : public Worker {
 public:
  SimWorker(SimEnv* env, std::string name, unsigned depth, Step step);
  ~SimWorker() override;

  void wake() override { m_ready = true; }

  const std::string& name() const { return m_name; }
  SimQueue& queue() { return m_queue; }
  // A step, or the rest of one.
  bool can_run() const;
  void run();
  // The turn at which a step that was left in the middle goes on; UINT64_MAX: there is none.
  uint64_t resumes_at() const { return m_fiber.under_way() ? m_resumes_at : UINT64_MAX; }
  std::optional<uint64_t> timer_us() const { return m_timer_us; }

 private:
  void end_step(const NextStep& next);
  void run_on_fiber();

  SimEnv* const m_env;
  const std::string m_name;
  const Step m_step;
  SimQueue m_queue;
  SimFiber m_fiber;  // with SimOptions::interleaved
  uint64_t m_resumes_at = 0;
  bool m_ready = true;
  bool m_ending = false;
  std::optional<uint64_t> m_timer_us;
};

class SimSignal : public Signal {
 public:
  explicit SimSignal(SimEnv* env) : m_env(env) {}
  // Releases a lock that its caller took, of which clang does not know here.
  void wait(MutexLock& lock, const std::function<bool()>& predicate) override NO_THREAD_SAFETY_ANALYSIS;
  void notify_all() override {}

 private:
  SimEnv* const m_env;
};

}  // namespace vtkv
