// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_worker.h"

#include <limits>
#include <utility>

#include "vtkv/testing/sim_file.h"
#include "vtkv/testing/sim_interleaving.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

void SimQueue::submit(IoRequest* request) {
  VTKV_ASSERT(m_depth != 0);
  if (m_started.size() < m_depth) {
    start(request);
  } else {
    m_backlog.push_back(request);
  }
}

void SimQueue::start(IoRequest* request) {
  auto& file = *static_cast<SimFile*>(request->file);
  size_t record = 0;
  if (request->op == IoRequest::Op::write) {
    record = m_env->submit(file.write_op(request->offset, request->buffers));
  } else if (request->op == IoRequest::Op::sync) {
    record = m_env->submit_sync(file.inode(), {});
  }
  m_started.push_back({request, record});
}

Status SimQueue::run(const Entry& entry) {
  IoRequest& request = *entry.request;
  auto& file = *static_cast<SimFile*>(request.file);
  switch (request.op) {
    case IoRequest::Op::read:
      return file.read_vector(request.offset, request.buffers);
    case IoRequest::Op::sync:
      return m_env->execute_sync(entry.record);
    case IoRequest::Op::write:
      break;
  }
  VTKV_RETURN_IF_ERROR(file.check_write(request.offset, request.buffers));
  // The host may take the bytes at any time until the request completes.
  const bool buffer_unchanged_in_flight = m_env->m_trace.ops[entry.record].data.equals(request.buffers);
  VTKV_ASSERT(buffer_unchanged_in_flight);
  return m_env->execute(entry.record);
}

void SimQueue::execute(size_t chosen) {
  const Entry entry = m_started[chosen];
  m_started.erase(m_started.begin() + static_cast<ptrdiff_t>(chosen));
  entry.request->result = run(entry);
  m_completed.push_back(entry);
  if (!m_backlog.empty()) {
    IoRequest* next = m_backlog.front();
    m_backlog.pop_front();
    start(next);
  }
}

void SimQueue::reap(std::vector<IoRequest*>* completed) {
  for (const Entry& entry : m_completed) {
    completed->push_back(entry.request);
    if (entry.request->op == IoRequest::Op::write && entry.request->result.ok()) {
      m_env->complete(entry.record);
    }
  }
  m_completed.clear();
}

SimWorker::SimWorker(SimEnv* env, std::string name, unsigned depth, Step step)
    : m_env(env), m_name(std::move(name)), m_step(std::move(step)), m_queue(env, depth) {
  m_env->m_workers.push_back(this);
}

// The step under way comes to its end, as on the host.
SimWorker::~SimWorker() {
  VTKV_ASSERT(!m_env->m_in_step);
  m_ending = true;
  while (m_fiber.under_way()) {
    const bool goes_on = m_env->run_one();
    VTKV_ASSERT(goes_on);
  }
  while (m_queue.executable() != 0) {
    m_queue.execute(m_env->m_random() % m_queue.executable());
  }
  std::erase(m_env->m_workers, this);
}

bool SimWorker::can_run() const {
  return m_fiber.under_way() ? m_resumes_at <= m_env->m_interleaving->turn() : m_ready && !m_ending;
}

void SimWorker::run() {
  if (m_env->m_interleaving) {
    run_on_fiber();
    return;
  }
  m_ready = false;
  m_timer_us.reset();
  m_env->m_in_step = true;
  const NextStep next = m_step(m_queue);
  m_env->m_in_step = false;
  end_step(next);
}

void SimWorker::run_on_fiber() {
  SimLockObserver* const before = set_lock_observer(m_env->m_interleaving.get());
  m_env->m_in_step = true;
  if (m_fiber.under_way()) {
    m_fiber.resume();
  } else {
    m_ready = false;
    m_timer_us.reset();
    m_fiber.start([this] { end_step(m_step(m_queue)); });
  }
  m_env->m_in_step = false;
  m_resumes_at = m_env->m_interleaving->resume_at();
  set_lock_observer(before);
}

void SimWorker::end_step(const NextStep& next) {
  if (next.when == NextStep::When::now || m_queue.has_completed()) {
    m_ready = true;
  } else if (next.when == NextStep::When::later) {
    m_timer_us = m_env->m_now_us + static_cast<uint64_t>(next.delay.count());
  }
}

void SimSignal::wait(MutexLock& lock, const std::function<bool()>& predicate) {
  // Now and then others get ahead of a waiter that need not wait.
  uint64_t courtesy_steps = m_env->m_in_step ? 0 : m_env->m_random() % 4;
  uint64_t timers = 0;
  constexpr uint64_t kMaxTimers = 10'000'000;  // nothing but timers for this long: it will never hold
  while (courtesy_steps != 0 || !predicate()) {
    // A step that waits for another worker would block a thread that the other may need.
    const bool waiting_inside_a_step = m_env->m_in_step;
    VTKV_ASSERT(!waiting_inside_a_step);
    const bool was_driving = std::exchange(m_env->m_driving, true);  // nobody else runs between the look and the wait
    lock.unlock();
    if (!m_env->run_one()) {
      if (courtesy_steps == 0 && (!m_env->fire_timer(std::numeric_limits<uint64_t>::max()) || ++timers > kMaxTimers)) {
        m_env->report_deadlock();
      }
      courtesy_steps = 1;
    }
    courtesy_steps -= courtesy_steps == 0 ? 0 : 1;
    lock.lock();
    m_env->m_driving = was_driving;
  }
}

}  // namespace vtkv
