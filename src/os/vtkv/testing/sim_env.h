// SPDX-License-Identifier: LGPL-2.1-or-later
// An Env in memory, in one thread, driven by one seed: the same seed gives the same run.
//
// Workers are stepped, and queued requests executed, in seeded order by Signal::wait and by
// run_until_idle. The clock is virtual: it jumps to the next timer when a waiter finds everything else
// idle. A waiter that finds everything idle and no timer is a deadlock; it, and use from a second
// thread, abort with a message.
//
// With SimOptions::interleaved, a step is left in the middle, too, at its I/O and its locks, and others come in between
// (sim_interleaving.h): what threads could do to one another, in an order that the seed gives again.
//
// What lies below kSimOtherFileSystem is on a file system and a device of its own.
//
// Everything is recorded for CrashImages (crash_images.h), which makes the SimEnvs that a crash could
// have left. Those are ordinary SimEnvs: they are recorded as well.
//
//   SimEnv env({.seed = 7, .profile = SimProfile::weakest});
//   ... run the code; env.mark(17) when it acknowledges number 17 ...
//   CrashImages images(env.trace(), {});
//   for (CrashState state; images.next(&state);) {
//     auto crashed = images.materialize(state);
//     ... open what is in *crashed, compare with images.marks(state) ...
//   }
#pragma once

#include <functional>
#include <map>
#include <random>
#include <thread>

#include "vtkv/env.h"
#include "vtkv/testing/sim_trace.h"

namespace vtkv {

struct SimOptions {
  uint64_t seed = 1;
  SimProfile profile = SimProfile::ext4;
  uint64_t capacity_bytes = uint64_t{1} << 40;
  bool record = true;  // false: for long runs that look at no crash; nothing is kept of the past
  bool interleaved = false;  // steps of workers are interrupted
};

// What a fault can be put on. Queued and direct requests count alike.
enum class SimCall {
  read,
  write,
  sync,
  allocate,  // also write_zeros
  truncate,
  punch_hole,
  open,
  rename,
  remove,
  create_directory,
  sync_directory,
  size,
  list_directory,
  file_system_info,
};

// A write that reports success and did something else.
enum class SimDamage { lost, misdirected, bit_flip };
enum class SimMisread { bit_flips, zeros };  // one bit of each sector is another one; nothing seems to be there

// What a bad range of a file refuses. Of a hole that is to be punched over it, what lies before it is punched.
enum class SimBad { reads, writes, punches };

class SimEnv : public Env {
 public:
  explicit SimEnv(const SimOptions& options = {});
  // As after a crash that left this image, all of it durable.
  SimEnv(const SimOptions& options, SimImage image, uint64_t next_inode);
  ~SimEnv() override;

  // Env
  Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) override;
  Status create_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status list_directory(const std::string& path, std::vector<std::string>* names) override;
  Status rename_file(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  bool exists(const std::string& path) override;
  Status file_system_info(const std::string& path, FileSystemInfo* info) override;
  Status lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) override;
  std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) override;
  std::unique_ptr<Signal> new_signal() override;
  uint64_t now_us() override;
  uint64_t wall_clock_us() override;
  uint64_t random_u64() override;
  unsigned processors() override { return 1; }

  // Driving

  // Steps workers and executes requests until none is ready; fires no timer.
  void run_until_idle();
  // The same, and moves the clock as advance() does. False: some were still ready after so many steps.
  bool becomes_idle(uint64_t steps_most, std::chrono::microseconds time = {});
  // Moves the clock, firing the timers that come due, and runs until idle.
  void advance(std::chrono::microseconds time);
  // Called after each step of a worker, so that what the step has caused can be marked at its time.
  void set_step_observer(std::function<void()> observer) { m_step_observer = std::move(observer); }

  // Recording

  void mark(uint64_t id, std::string text = {});
  // Takes what is there for durable and forgets how it came about. No request may be in flight.
  void restart_trace();
  const SimTrace& trace() const { return m_trace; }

  // Faults

  // The n-th such call from now (1: the next one) fails with the status and changes nothing; when
  // persistent, so do all later ones. A failed sync also spoils what it would have covered: the writes
  // stay in doubt for ever, as when the kernel drops the pages.
  void fail_nth(SimCall call, uint64_t n, Status status, bool persistent);
  void damage_nth_write(uint64_t n, SimDamage damage);
  // That read succeeds with other bytes. What lies in the file stays.
  void misread_nth(uint64_t n, SimMisread how) { m_misreads[m_calls[SimCall::read] + n] = how; }
  // From now on such calls that touch [begin, end) of the file fail with EIO.
  void set_bad(SimBad what, const std::string& path, uint64_t begin, uint64_t end);
  void clear_faults();
  uint64_t calls(SimCall call) const;
  // Space for more than this much is refused with Code::no_space.
  void set_capacity(uint64_t bytes) { m_trace.capacity_bytes = bytes; }
  // The same of the other file system, which at first has as much as is wanted. What it has counts here as well.
  void set_other_capacity(uint64_t bytes) { m_other_capacity_bytes = bytes; }
  uint64_t allocated_bytes() const { return m_image.allocated_bytes(); }
  uint64_t other_allocated_bytes() const;
  // Behind the back of the program, durable at once. The byte is inside the file.
  void flip_bits(const std::string& path, uint64_t offset, char mask);
  std::vector<std::string> files() const;

 private:
  friend class SimFile;
  friend class SimQueue;
  friend class SimWorker;
  friend class SimSignal;
  friend class SimInterleaving;
  class Lock;

  struct Fault {
    SimCall call;
    uint64_t at;  // the count of the call
    Status status;
    bool persistent;
  };

  struct Bad {
    SimBad what;
    uint64_t inode, begin, end;
  };

  // The fault that strikes this call, or ok.
  Status strike(SimCall call);
  // The first bad byte of the range; kSimNever: it is good.
  uint64_t first_bad(SimBad what, uint64_t inode, uint64_t offset, uint64_t length) const;
  // The error of a range that is bad, or ok.
  Status strike_bad(SimBad what, uint64_t inode, uint64_t offset, uint64_t length) const;
  // What the n-th write really does.
  void damage(SimOp* op);
  uint64_t tick() { return ++m_trace.end; }

  // An operation's life. The index stays valid until restart_trace.
  size_t submit(SimOp op);
  Status execute(size_t index);
  void complete(size_t index);
  // All three: of a synchronous call.
  Status perform(SimOp op);
  Status perform_sync(uint64_t inode, const std::string& directory);

  size_t submit_sync(uint64_t inode, const std::string& directory);
  Status execute_sync(size_t index);
  void prime_covered(const SimSync& sync);
  void spoil_covered(const SimSync& sync);

  Status check_space(const SimOp& op) const;
  std::string path_of(uint64_t inode) const;
  void drop_unused_inodes();
  void forget_past();

  // One step of a ready worker, the rest of one, or one request, chosen by the seed; false when there is none.
  bool run_one();
  size_t count_choices();
  void run_chosen(size_t chosen);
  // Inside run_one(), and not in a step.
  bool driving() const { return m_driving; }
  // Others may come first.
  void split();
  // Lets the earliest timer fire; false when there is none.
  bool fire_timer(uint64_t limit_us);
  [[noreturn]] void report_deadlock();
  void check_thread() const;

  std::mt19937_64 m_random;
  const bool m_record;
  const std::thread::id m_thread;
  SimTrace m_trace;
  SimImage m_image;  // as the program sees it
  // Writes into unprimed space that no sync of their file has covered yet.
  std::map<uint64_t, std::vector<size_t>> m_unprimed;

  std::vector<Fault> m_faults;
  std::vector<Bad> m_bad;
  std::map<SimCall, uint64_t> m_calls;
  std::map<uint64_t, SimDamage> m_damages;
  std::map<uint64_t, SimMisread> m_misreads;
  std::set<std::string> m_locked;
  std::multiset<uint64_t> m_open_files;  // their inodes

  std::vector<class SimWorker*> m_workers;
  std::function<void()> m_step_observer;
  std::unique_ptr<class SimInterleaving> m_interleaving;  // null: no step is interrupted
  bool m_in_step = false;
  bool m_driving = false;
  size_t m_calls_under_way = 0;  // direct ones that others came in between
  uint64_t m_now_us = 0;
  uint64_t m_other_capacity_bytes = kSimNever;
};

std::string_view to_string(SimProfile profile);

}  // namespace vtkv
