// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/posix_worker.h"

#include <pthread.h>
#include <signal.h>

#include <future>

namespace vtkv {

PosixWorker::PosixWorker(const std::string& name, MakeQueue make_queue, Step step) : m_step(std::move(step)) {
  // Signals go to the threads of the program that embeds us, but for those by which a thread itself ends the process:
  // blocked, they do so past the program's handler, which reports the crash.
  sigset_t others;
  sigset_t before;
  sigfillset(&others);
  for (const int own : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
    sigdelset(&others, own);
  }
  pthread_sigmask(SIG_SETMASK, &others, &before);
  std::promise<void> ready;
  m_thread = std::thread([this, &make_queue, &ready] {
    m_queue = make_queue();
    ready.set_value();
    run();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(m_thread.native_handle(), name.substr(0, 15).c_str());
  ready.get_future().wait();
}

PosixWorker::~PosixWorker() {
  m_stopping.store(true);
  m_queue->wake();
  m_thread.join();
}

void PosixWorker::run() {
  for (;;) {
    m_queue->accept_wakes();
    // After accepting: a wake that comes later than this ends the wait below.
    if (m_stopping.load()) {
      break;
    }
    const NextStep next = m_step(*m_queue);
    switch (next.when) {
      case NextStep::When::now:
        m_queue->flush();
        break;
      case NextStep::When::later:
        m_queue->wait(next.delay);
        break;
      case NextStep::When::on_event:
        m_queue->wait(std::nullopt);
        break;
    }
  }
  m_queue->shut_down();
}

}  // namespace vtkv
