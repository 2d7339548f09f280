// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/posix_env.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <thread>

#include "vtkv/env/blocking_queue.h"
#include "vtkv/env/posix/io_ring.h"
#include "vtkv/env/posix/posix_file.h"
#include "vtkv/env/posix/posix_worker.h"
#include "vtkv/env/ring_refusal.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

namespace {

class PosixSignal : public Signal {
 public:
  void wait(MutexLock& lock, const std::function<bool()>& predicate) override { m_condition.wait(lock, predicate); }
  void notify_all() override { m_condition.notify_all(); }

 private:
  ConditionVariable m_condition;
};

constexpr std::chrono::milliseconds kLockPollInterval{10};

uint64_t clock_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// Returns 0 or an error number; EWOULDBLOCK when it is still held at the end.
int lock_within(int descriptor, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return errno;
    }
    if (std::chrono::steady_clock::now() >= end) {
      return EWOULDBLOCK;
    }
    std::this_thread::sleep_for(kLockPollInterval);
  }
  return 0;
}

int open_directory(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

}  // namespace

// flock belongs to the open file description: a second open of the same file conflicts even within this
// process, and the description lives until the last ring that refers to it is gone.
class PosixEnv::Lock : public FileLock {
 public:
  Lock(HeldLocks* held, int descriptor) : m_held(held), m_descriptor(descriptor), m_owner(::getpid()) {}
  // The workers that wrote under the lock are gone by now, and they waited for their requests. A fork shares the lock
  // with its parent, and would unlock it for both.
  ~Lock() override { is_inherited() ? static_cast<void>(::close(m_descriptor)) : m_held->give_up(m_descriptor); }
  bool is_inherited() const override { return ::getpid() != m_owner; }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  HeldLocks* const m_held;
  const int m_descriptor;
  const pid_t m_owner;
};

Status PosixEnv::open_file(const std::string& path, const OpenOptions& options, std::unique_ptr<File>* file) {
  return PosixFile::open(path, options, file);
}

Status PosixEnv::create_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0) {
      PosixFile::give_to_owner_of_directory(descriptor, path);
      ::close(descriptor);
    }
    return {};
  }
  const int error_number = errno;
  struct stat status{};
  if (error_number == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return {};
  }
  return Status::from_errno(error_number, "cannot create directory " + path);
}

Status PosixEnv::sync_directory(const std::string& path) {
  const int descriptor = open_directory(path);
  if (descriptor < 0) {
    return Status::from_errno(errno, "cannot open directory " + path);
  }
  const int error_number = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error_number == 0 ? Status() : note_sync(Status::from_errno(error_number, "cannot sync directory " + path));
}

Status PosixEnv::list_directory(const std::string& path, std::vector<std::string>* names) {
  names->clear();
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) {
    return Status::from_errno(errno, "cannot list directory " + path);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names->emplace_back(name);
    }
  }
  const int error_number = errno;
  ::closedir(directory);
  std::sort(names->begin(), names->end());
  return error_number == 0 ? Status() : Status::from_errno(error_number, "cannot list directory " + path);
}

Status PosixEnv::rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return Status::from_errno(errno, "cannot rename " + from + " to " + to);
  }
  return {};
}

Status PosixEnv::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) {
    return Status::from_errno(errno, "cannot remove " + path);
  }
  return {};
}

// A link that leads nowhere is there, too.
bool PosixEnv::exists(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Status PosixEnv::file_system_info(const std::string& path, FileSystemInfo* info) {
  return m_file_systems.read(path, now_us(), info);
}

Status PosixEnv::lock_file(const std::string& path, std::unique_ptr<FileLock>* lock) {
  const int descriptor = PosixFile::open_descriptor(path, O_RDWR | O_CLOEXEC, PosixFile::Creation::when_missing);
  if (descriptor < 0) {
    return PosixFile::open_failed(errno, path);
  }
  const int error_number = lock_within(descriptor, m_lock_patience);
  if (error_number != 0) {
    ::close(descriptor);
    if (error_number == EWOULDBLOCK) {
      return Status::busy(path +
                          " is locked: another process has it open, or one that was killed still writes; "
                          "stop that one first, or wait until its writes have ended");
    }
    return Status::from_errno(error_number, "cannot lock " + path);
  }
  if (!m_locks.add(descriptor)) {
    ::close(descriptor);
    return Status::failed("cannot lock " + path + ": this process holds " + std::to_string(HeldLocks::kMax) +
                          " locks already");
  }
  *lock = std::make_unique<Lock>(&m_locks, descriptor);
  return {};
}

std::unique_ptr<WorkerQueue> PosixEnv::make_queue(unsigned io_depth) {
  if (io_depth == 0 || !m_use_io_uring) {
    return std::make_unique<BlockingQueue>(io_depth);
  }
  std::unique_ptr<WorkerQueue> queue;
  const Status status = IoRing::create(io_depth, &m_locks, &queue);
  if (status.ok()) {
    return queue;
  }
  if (note_ring_refusal(status)) {
    std::fprintf(stderr, "vtkv: %s\n", ring_refusal().c_str());
  }
  return std::make_unique<BlockingQueue>(io_depth);
}

std::unique_ptr<Worker> PosixEnv::start_worker(std::string name, unsigned io_depth, Worker::Step step) {
  return std::make_unique<PosixWorker>(name, [this, io_depth] { return make_queue(io_depth); }, std::move(step));
}

std::unique_ptr<Signal> PosixEnv::new_signal() { return std::make_unique<PosixSignal>(); }

uint64_t PosixEnv::now_us() { return clock_us(CLOCK_MONOTONIC); }

uint64_t PosixEnv::wall_clock_us() { return clock_us(CLOCK_REALTIME); }

uint64_t PosixEnv::random_u64() {
  uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
    VTKV_ASSERT(errno == EINTR);
  }
  return value;
}

unsigned PosixEnv::processors() { return std::max(1u, std::thread::hardware_concurrency()); }

Env* posix_env() {
  static auto* const env = new PosixEnv(/*use_io_uring=*/true);
  return env;
}

}  // namespace vtkv
