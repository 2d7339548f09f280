// SPDX-License-Identifier: LGPL-2.1-or-later
// The only door to the operating system: files, asynchronous I/O, clocks, randomness, threads.
//
// Two implementations: posix_env (O_DIRECT, io_uring, threads) and testing/sim_env (one thread,
// deterministic, in memory, with a crash model). Code above this header is written so that both can
// drive it:
//   * background work is a Worker: a step function that never waits for another worker;
//   * waiting for background work happens only in Signal::wait, which the simulator implements by
//     stepping the workers until the predicate holds (and fails the test when all are idle: a deadlock).
//
// Durability model (what callers may assume; sim_env's profiles check that nothing more is assumed):
//   * a completed write is durable only after a later sync of its file completed;
//   * where FileSystemInfo::single_flush holds, a sync of any file makes durable every write that had
//     completed, into already-written (primed) space, in any file of that file system;
//   * a file's existence, size and name are durable after sync of the file and of its directory;
//   * a write is torn at 512-byte granularity by a crash, in any combination.
// A failed sync is never retried by anyone: the kernel may have dropped the pages.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/status.h"

namespace vtkv {

class GroupPacer;  // util/group_pacer.h
class MutexLock;   // util/mutex.h

// Every offset, length and buffer address of direct I/O is a multiple of this many bytes.
inline constexpr size_t kIoAlignment = 4096;

// So often in all is a read tried that fails, or whose bytes do not match their checksum.
inline constexpr int kReadTries = 4;

enum class FileSystemKind { ext4, xfs, btrfs, other };
std::string_view to_string(FileSystemKind kind);

struct FileSystemInfo {
  FileSystemKind kind = FileSystemKind::other;
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // to an unprivileged user (f_bavail)
  bool read_only = false;
  bool single_flush = false;     // see the durability model above
  bool rotational = false;       // of the block device below; false when it cannot be told
  std::string device;            // e.g. "loop3", "nvme0n1"; empty when it cannot be told
  std::string mount_point;
};

struct OpenOptions {
  bool create = false;     // create when missing: mode 0600; by root, for the owner of its directory
  bool exclusive = false;  // with create: fail with EEXIST when present
  bool read_only = false;
  bool direct = true;      // O_DIRECT: callers keep kIoAlignment
};

struct FileRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// What of a file, up to its size, is not primed; ascending, neighbours in one.
struct FileSpace {
  std::vector<FileRange> holes;      // no space
  std::vector<FileRange> unwritten;  // space that was not written since it was reserved
};

// An open file, never by way of a link. Thread-safe: any number of threads may call any method at once.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  // Reads exactly `length` bytes or fails; past the end of the file is Code::corruption.
  virtual Status read(uint64_t offset, size_t length, char* destination) = 0;
  // Writes all of it or fails. Not durable before sync.
  virtual Status write(uint64_t offset, const char* source, size_t length) = 0;
  virtual Status sync() = 0;  // fdatasync
  virtual Status size(uint64_t* bytes) = 0;
  virtual Status truncate(uint64_t bytes) = 0;
  // Reserves space, extending the size; what was never written there reads as zeros, and a write
  // to it changes file-system metadata (needs this file's own sync).
  virtual Status allocate(uint64_t offset, uint64_t length) = 0;
  // Reserves and pre-writes with zeros: after the next sync the range is primed.
  virtual Status write_zeros(uint64_t offset, uint64_t length) = 0;
  // Gives the range back to the file system; it reads as zeros and is no longer primed.
  virtual Status punch_hole(uint64_t offset, uint64_t length) = 0;
  // Code::unsupported: the file system does not tell. Takes time for each extent.
  virtual Status map_space(FileSpace* space) = 0;
};

class IoQueue;

// One asynchronous request. The caller owns it and everything it points to until it is reaped.
struct IoRequest {
  enum class Op : uint8_t { read, write, sync };
  Op op = Op::write;
  File* file = nullptr;
  uint64_t offset = 0;
  std::vector<iovec> buffers;  // read, write: aligned; total length a multiple of kIoAlignment
  bool any_file = false;       // sync: any file of the database will do (single_flush, and all of it was primed)
  size_t waiters = 0;          // sync: so many submissions wait for it
  Status result;               // valid once reaped; a short transfer is completed or an error
  void* owner = nullptr;       // the caller's
  IoQueue* queue = nullptr;    // of SharedThreads: whose completion this is
};

// Asynchronous I/O of one worker. Used only inside that worker's step.
// Requests of one queue complete in any order; a sync covers only requests reaped before its submission.
class IoQueue {
 public:
  virtual ~IoQueue() = default;
  // Never blocks for completion; requests beyond the ring's depth wait inside the queue.
  virtual void submit(IoRequest* request) = 0;
  // Appends what has completed since the last call; does not block.
  virtual void reap(std::vector<IoRequest*>* completed) = 0;
  virtual size_t in_flight() const = 0;
  // The worker has nothing to do before all that is in flight has completed: a hint for the sleep behind this step,
  // which then need not end with each request. A wake may end it as late.
  virtual void await_all() {}
  // Where several workers share syncs of any file: what paces all of them. Null: each has its own.
  virtual GroupPacer* shared_pacer() { return nullptr; }
};

// What a worker's step says about when to call it again.
struct NextStep {
  enum class When { now, later, on_event };
  When when = When::on_event;
  std::chrono::microseconds delay{0};  // for later: at most this long; events still come first

  static NextStep now() { return {When::now, {}}; }
  static NextStep on_event() { return {When::on_event, {}}; }
  static NextStep later(std::chrono::microseconds delay) { return {When::later, delay}; }
};

// A background worker: a thread under posix_env, a cooperative task under sim_env. Its step is called
// again after wake(), when a request of its IoQueue completed, or as NextStep says; never twice at once.
// Destroying it waits for the step under way and for its requests in flight, then ends it.
class Worker {
 public:
  using Step = std::function<NextStep(IoQueue& io)>;
  virtual ~Worker() = default;
  virtual void wake() = 0;  // thread-safe; cheap when the worker is awake already
};

// A condition variable that the simulator can drive. A predicate is called under the lock:
// [this]() REQUIRES(m_mutex) { return m_ready; }
class Signal {
 public:
  virtual ~Signal() = default;
  virtual void wait(MutexLock& lock, const std::function<bool()>& predicate) = 0;
  virtual void notify_all() = 0;
};

// Held until destroyed AND the last request submitted by this process's I/O queues has ended: a killed process's writes
// may still be landing when its successor starts (doc/crash_consistency.md, What it asks in return).
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Did another process take it, of which this one is a fork? Then the lock is that one's.
  virtual bool is_inherited() const { return false; }
};

// Thread-safe. Outlives everything it made.
class Env {
 public:
  virtual ~Env() = default;

  virtual Status open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) = 0;
  virtual Status create_directory(const std::string& path) = 0;  // mode 0700, owner as above; fine when it exists
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Status list_directory(const std::string& path, std::vector<std::string>* names) = 0;
  virtual Status rename_file(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;  // false: the host says that nothing is there, not even a link
  virtual Status file_system_info(const std::string& path, FileSystemInfo* info) = 0;
  // Code::busy when another process, or another open store of this process, holds it. The host's waits some
  // seconds for one that is on its way out.
  virtual Status lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) = 0;

  // io_depth 0: the worker does no asynchronous I/O (its IoQueue accepts nothing).
  virtual std::unique_ptr<Worker> start_worker(std::string name, unsigned io_depth, Worker::Step step) = 0;
  virtual std::unique_ptr<Signal> new_signal() = 0;

  virtual uint64_t now_us() = 0;  // monotonic
  virtual uint64_t wall_clock_us() = 0;  // since the Unix epoch
  virtual uint64_t random_u64() = 0;
  virtual unsigned processors() = 0;  // that this process may use
};

// The process-wide implementation on the host. Never destroyed.
Env* posix_env();

}  // namespace vtkv
