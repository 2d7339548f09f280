// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/shared_threads.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "vtkv/env/shared_flush.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// What one worker sees of its thread's queue.
class SharedQueue final : public IoQueue {
 public:
  explicit SharedQueue(SharedFlush* flush) : m_flush(flush) {}

  void submit(IoRequest* request) override {
    request->queue = this;
    ++m_in_flight;
    if (request->op == IoRequest::Op::sync && request->any_file) {
      m_flush->add(request);
    } else {
      m_thread_queue->submit(request);
    }
  }
  void reap(std::vector<IoRequest*>* completed) override {
    completed->insert(completed->end(), m_completed.begin(), m_completed.end());
    m_in_flight -= m_completed.size();
    m_completed.clear();
  }
  size_t in_flight() const override { return m_in_flight; }
  GroupPacer* shared_pacer() override { return &m_flush->pacer(); }

  // Of the thread's step.
  void lend(IoQueue* thread_queue) { m_thread_queue = thread_queue; }
  void completed(IoRequest* request) { m_completed.push_back(request); }
  bool has_completed() const { return !m_completed.empty(); }

 private:
  SharedFlush* const m_flush;
  IoQueue* m_thread_queue = nullptr;
  std::vector<IoRequest*> m_completed;
  size_t m_in_flight = 0;  // not reaped yet
};

class SharedWorker;

// The sooner of two.
NextStep sooner(const NextStep& a, const NextStep& b) {
  using When = NextStep::When;
  if (a.when == When::later && b.when == When::later) {
    return a.delay < b.delay ? a : b;
  }
  return a.when < b.when ? a : b;  // now, later, on_event
}

}  // namespace

// A thread and its workers.
class SharedThread {
 public:
  SharedThread(Env* env, const std::string& name, unsigned io_depth);
  ~SharedThread();

  void add(SharedWorker* worker) EXCLUDES(m_mutex);
  // Waits until it is in no step and nothing of it is in flight, and ends it.
  void remove(SharedWorker* worker) EXCLUDES(m_mutex);
  void wake() { m_worker->wake(); }
  uint64_t now_us() { return m_env->now_us(); }
  SharedFlush* flush() { return &m_flush; }

 private:
  NextStep step(IoQueue& io);
  void deliver(IoQueue& io);

  Env* const m_env;
  // What one of those that do I/O together does, the others may have waited for (group_pacer.h): all are stepped.
  const bool m_step_together;
  Mutex m_mutex;
  const std::unique_ptr<Signal> m_ended;
  std::vector<SharedWorker*> m_workers GUARDED_BY(m_mutex);

  // The thread's own.
  SharedFlush m_flush;
  std::vector<SharedWorker*> m_stepped;    // scratch
  std::vector<IoRequest*> m_completed;     // scratch

  const std::unique_ptr<Worker> m_worker;  // last: its step uses the others
};

namespace {

class SharedWorker final : public Worker {
 public:
  SharedWorker(SharedThread* thread, Step step) : m_thread(thread), m_step(std::move(step)), m_queue(thread->flush()) {
    m_thread->add(this);
  }
  ~SharedWorker() override {
    m_ending.store(true);
    m_thread->remove(this);
  }
  void wake() override {
    m_woken.store(true);
    m_thread->wake();
  }

  // The rest: in the thread's step.

  // Its step, if there is a reason for one or its thread has seen an event of any worker.
  NextStep run(IoQueue& io, bool is_event) {
    if (m_ending.load()) {
      return NextStep::on_event();
    }
    if (std::exchange(m_is_new, false)) {
      return NextStep::now();  // this step's queue may not know of the locks that the worker writes under
    }
    if (!m_woken.exchange(false) && !is_event && !m_queue.has_completed()) {
      if (m_due_us == kNever) {
        return NextStep::on_event();
      }
      if (const uint64_t now_us = m_thread->now_us(); now_us < m_due_us) {
        return NextStep::later(std::chrono::microseconds(m_due_us - now_us));
      }
    }
    m_due_us = kNever;
    m_queue.lend(&io);
    const NextStep next = m_step(m_queue);
    if (next.when == NextStep::When::now || m_queue.has_completed()) {
      m_woken.store(true);
      return NextStep::now();
    }
    if (next.when == NextStep::When::later) {
      m_due_us = m_thread->now_us() + static_cast<uint64_t>(next.delay.count());
    }
    return next;
  }
  bool may_end() {
    if (m_ending.load()) {
      std::vector<IoRequest*> unseen;
      m_queue.reap(&unseen);
    }
    return m_ending.load() && m_queue.in_flight() == 0;
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  SharedThread* const m_thread;
  const Step m_step;
  std::atomic<bool> m_woken{true};
  std::atomic<bool> m_ending{false};
  SharedQueue m_queue;
  bool m_is_new = true;
  uint64_t m_due_us = kNever;
};

}  // namespace

SharedThread::SharedThread(Env* env, const std::string& name, unsigned io_depth)
    : m_env(env),
      m_step_together(io_depth > 0),
      m_ended(env->new_signal()),
      m_flush(env),
      m_worker(env->start_worker(name, io_depth, [this](IoQueue& io) { return step(io); })) {}

SharedThread::~SharedThread() {
  const MutexLock lock(m_mutex);
  VTKV_ASSERT(m_workers.empty());
}

void SharedThread::add(SharedWorker* worker) {
  {
    const MutexLock lock(m_mutex);
    m_workers.push_back(worker);
  }
  wake();
}

void SharedThread::remove(SharedWorker* worker) {
  wake();
  MutexLock lock(m_mutex);
  m_ended->wait(lock, [&]() REQUIRES(m_mutex) {
    return std::find(m_workers.begin(), m_workers.end(), worker) == m_workers.end();
  });
}

void SharedThread::deliver(IoQueue& io) {
  m_completed.clear();
  io.reap(&m_completed);
  for (size_t i = 0; i < m_completed.size(); ++i) {
    IoRequest* const request = m_completed[i];
    if (m_flush.is(request)) {
      const std::vector<IoRequest*>& served = m_flush.end();
      m_completed.insert(m_completed.end(), served.begin(), served.end());
    } else {
      static_cast<SharedQueue*>(request->queue)->completed(request);
    }
  }
}

NextStep SharedThread::step(IoQueue& io) {
  deliver(io);
  {
    const MutexLock lock(m_mutex);
    m_stepped = m_workers;
  }
  NextStep next = NextStep::on_event();
  for (SharedWorker* worker : m_stepped) {
    next = sooner(next, worker->run(io, m_step_together));
  }
  if (const auto hold = m_flush.begin(io); hold.count() > 0) {
    next = sooner(next, NextStep::later(hold));
  }
  if (m_flush.pacer().take_released()) {
    next = NextStep::now();
  }
  {
    const MutexLock lock(m_mutex);
    if (std::erase_if(m_workers, [](SharedWorker* worker) { return worker->may_end(); }) > 0) {
      m_ended->notify_all();
    }
  }
  return next;
}

SharedThreads::SharedThreads(Env* base, std::set<std::string> with_own_threads)
    : EnvWrapper(base), m_with_own_threads(std::move(with_own_threads)) {}

SharedThreads::~SharedThreads() = default;

std::unique_ptr<Worker> SharedThreads::start_worker(std::string name, unsigned io_depth, Worker::Step step) {
  if (m_with_own_threads.contains(name)) {
    return m_base->start_worker(std::move(name), io_depth, std::move(step));
  }
  const MutexLock lock(m_mutex);
  std::unique_ptr<SharedThread>& thread = m_threads[{name, io_depth}];
  if (!thread) {
    thread = std::make_unique<SharedThread>(m_base, name, io_depth);
  }
  return std::make_unique<SharedWorker>(thread.get(), std::move(step));
}

}  // namespace vtkv
