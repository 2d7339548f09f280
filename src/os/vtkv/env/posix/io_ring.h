// SPDX-License-Identifier: LGPL-2.1-or-later
// The I/O queue of a worker over io_uring.
//
// The thread that creates it is the only one to use it, except for wake(). A pass of the worker costs one
// system call: wait() submits everything that was queued and sleeps in the same io_uring_enter. Another
// thread wakes the sleeper through an eventfd whose read is always armed in the ring, and pays a system
// call for it only when the worker does sleep.
//
// io_uring hands every sync to a kernel thread, which wakes up for it and wakes the worker up behind it. While a
// worker's syncs pass without anybody waking it meanwhile, the one that is submitted is called directly where the
// worker would sleep, which saves that detour; the first wake during one ends this, so that writes overlap with syncs
// again. By the same sign await_all() is believed.
//
// The ring holds a reference to each lock file that the process holds, until the next step after it is given up or the
// ring is shut down. After SIGKILL the kernel drops it when the last request has ended (doc/crash_consistency.md, What
// it asks in return).
#pragma once

#include <liburing.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "vtkv/env/posix/held_locks.h"
#include "vtkv/env/worker_queue.h"

namespace vtkv {

class IoRing : public WorkerQueue {
 public:
  // At most `depth` requests are at the kernel at once. Fails when the host refuses io_uring. `locks` outlive it.
  static Status create(unsigned depth, const HeldLocks* locks, std::unique_ptr<WorkerQueue>* queue);
  ~IoRing() override;

  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  void submit(IoRequest* request) override;
  void reap(std::vector<IoRequest*>* completed) override;
  size_t in_flight() const override;
  void await_all() override { m_awaits_all = true; }
  void flush() override;
  void wait(std::optional<std::chrono::microseconds> limit) override;
  void accept_wakes() override;
  void shut_down() override;
  void wake() override;

 private:
  // A request at the kernel, and what is left of it after short transfers.
  struct Entry {
    IoRequest* request = nullptr;
    size_t done = 0;
    std::vector<iovec> rest;  // used only after a short transfer
  };

  IoRing(unsigned depth, const HeldLocks* locks, int wake_descriptor);
  Status refer_to_locks();
  void start(IoRequest* request);
  void prepare(Entry* entry);
  void arm_wake();
  io_uring_sqe* next_sqe();
  // Takes what the kernel has completed.
  void collect();
  void complete(Entry* entry, int result);
  void finish(Entry* entry, Status status);
  bool transfer_goes_on(Entry* entry, size_t transferred);
  void submit_prepared();
  void start_lone_sync();
  // Nobody woke this worker in a while: no other one is in a hurry.
  bool is_quiet() const;
  // Calls it here and now if that is the better way; false when it was not.
  bool call_lone_sync();
  void note_sync_end();

  io_uring m_ring{};
  const HeldLocks* const m_locks;
  const int m_wake_descriptor;
  std::atomic<bool> m_woken{false};
  std::atomic<bool> m_sleeping{false};

  // The worker's own.
  uint64_t m_locks_version = 0;  // that is referred to; 0: there is no table yet
  uint64_t m_wake_count = 0;  // where the armed read of the eventfd puts its result
  bool m_wake_armed = false;
  std::vector<Entry> m_entries;
  std::vector<Entry*> m_free_entries;
  std::deque<IoRequest*> m_backlog;  // beyond the ring's depth
  std::vector<IoRequest*> m_completed;

  // The sync that was submitted last, until it is known how to run it.
  IoRequest* m_lone_sync = nullptr;
  unsigned m_quiet_syncs = 0;   // in a row, during which nobody woke this worker
  bool m_woken_in_sync = false;
  unsigned m_sync_passes = 0;
  bool m_awaits_all = false;
};

}  // namespace vtkv
