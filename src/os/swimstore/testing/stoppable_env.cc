// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/stoppable_env.h"

#include <cerrno>
#include <utility>

namespace swimstore {

using vtkv::IoQueue;
using vtkv::IoRequest;
using vtkv::NextStep;
using vtkv::Worker;

class StoppableEnv::Queue final : public IoQueue {
 public:
  explicit Queue(StoppableEnv* env) : m_env(env) {}

  // Before each step of the worker, with the queue it really has.
  void begin_step(IoQueue* base) {
    m_base = base;
    if (m_env->m_stopped) {
      return;
    }
    m_env->m_held -= m_held.size();
    for (IoRequest* const request : std::exchange(m_held, {})) {
      submit(request);
    }
  }
  void submit(IoRequest* request) override {
    if (m_env->m_stopped) {
      m_held.push_back(request);
      ++m_env->m_held;
    } else if (m_env->m_failing) {
      request->result = vtkv::Status::from_errno(EIO, "simulated");
      m_failed.push_back(request);
    } else {
      m_base->submit(request);
    }
  }
  void reap(std::vector<IoRequest*>* completed) override {
    m_base->reap(completed);
    completed->insert(completed->end(), m_failed.begin(), m_failed.end());
    m_failed.clear();
  }
  bool has_failed() const { return !m_failed.empty(); }
  size_t in_flight() const override { return m_base->in_flight() + m_held.size() + m_failed.size(); }

 private:
  StoppableEnv* const m_env;
  IoQueue* m_base = nullptr;
  std::vector<IoRequest*> m_held;
  std::vector<IoRequest*> m_failed;  // not reaped yet
};

class StoppableEnv::StoppableWorker final : public Worker {
 public:
  StoppableWorker(StoppableEnv* env, std::string name, unsigned io_depth, Step step) : m_env(env), m_queue(env) {
    m_base = env->m_base->start_worker(std::move(name), io_depth, [this, step = std::move(step)](IoQueue& io) {
      m_queue.begin_step(&io);
      const NextStep next = step(m_queue);
      return m_queue.has_failed() ? NextStep::now() : next;
    });
    std::lock_guard lock(m_env->m_workers_lock);
    m_env->m_workers.insert(this);
  }
  ~StoppableWorker() override {
    {
      std::lock_guard lock(m_env->m_workers_lock);
      m_env->m_workers.erase(this);
    }
    m_base.reset();
  }
  void wake() override { m_base->wake(); }

 private:
  StoppableEnv* const m_env;
  Queue m_queue;
  std::unique_ptr<Worker> m_base;
};

std::unique_ptr<Worker> StoppableEnv::start_worker(std::string name, unsigned io_depth, Worker::Step step) {
  return std::make_unique<StoppableWorker>(this, std::move(name), io_depth, std::move(step));
}

// A request that is held after this was read as stopped is found by the step that the wake asks for.
void StoppableEnv::go_on() {
  m_stopped = false;
  std::lock_guard lock(m_workers_lock);
  for (Worker* const worker : m_workers) {
    worker->wake();
  }
}

void StoppableEnv::fail() {
  m_failing = true;
  go_on();
}

}  // namespace swimstore
