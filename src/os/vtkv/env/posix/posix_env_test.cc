// SPDX-License-Identifier: LGPL-2.1-or-later
// What only the host has: processes that die, rings, block devices. The rest is in env_test.cc.

#include "vtkv/env/posix/posix_env.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/posix/io_ring.h"
#include "vtkv/env/posix/posix_file.h"
#include "vtkv/env/read_all.h"
#include "vtkv/env/ring_refusal.h"

namespace vtkv {
namespace {

namespace fs = std::filesystem;

class PosixEnvTest : public testing::Test {
 protected:
  PosixEnvTest() { EXPECT_NE(::mkdtemp(m_folder.data()), nullptr); }
  ~PosixEnvTest() override { fs::remove_all(m_folder); }
  std::string path(const std::string& name) const { return m_folder + "/" + name; }

  std::string m_folder = fs::current_path() / "posix_env_test.XXXXXX";
};

// Ceph writes its report of a crash in a handler of the signal.
TEST_F(PosixEnvTest, AWorkerThatAbortsMeetsTheProgramsHandler) {
  const auto abort_in_worker = [] {
    ::signal(SIGABRT, [](int) { ::_exit(42); });
    const auto worker = posix_env()->start_worker("abort", 0, [](IoQueue&) -> NextStep { std::abort(); });
    ::pause();
  };
  EXPECT_EXIT(abort_in_worker(), testing::ExitedWithCode(42), "");
}

bool host_has_io_uring() {
  std::unique_ptr<WorkerQueue> queue;
  const HeldLocks none;
  return IoRing::create(1, &none, &queue).ok();
}

// As a container's seccomp profile does.
void refuse_io_uring() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    ::_exit(1);
  }
}

void run_out_of_descriptors() {
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  const rlimit limit{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Ends with 42 where the words are in what is told, once to whoever runs the program and to whoever asks.
void start_workers_refused(const std::function<void()>& refuse, const std::string& words) {
  refuse();
  if (!ring_refusal().empty()) {
    ::_exit(2);
  }
  for (int i = 0; i < 2; ++i) {
    PosixEnv(true).start_worker("worker", 4, [](IoQueue&) { return NextStep::on_event(); });
  }
  ::_exit(ring_refusal().find(words) != std::string::npos ? 42 : 3);
}

TEST_F(PosixEnvTest, ARefusalOfIoUringIsToldOnceAndKept) {
  EXPECT_EXIT(start_workers_refused(refuse_io_uring, "kernel.io_uring_disabled"), testing::ExitedWithCode(42),
              "^vtkv: the host refuses io_uring \\(.*not permitted\\).*seccomp[^\n]*\n$");
  EXPECT_EXIT(start_workers_refused(run_out_of_descriptors, "LimitNOFILE"), testing::ExitedWithCode(42),
              "^vtkv: the host refuses io_uring \\(.*Too many open files\\).*LimitNOFILE[^\n]*\n$");
}

// How many files every ring of this process refers to: what the kernel lists between "UserFiles" and "UserBufs".
std::vector<unsigned> registered_files_of_rings() {
  std::vector<unsigned> counts;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error).string().find("io_uring") == std::string::npos || error) {
      continue;
    }
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    bool is_listed = false;
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("UserFiles:")) {
        is_listed = true;
        counts.push_back(0);
      } else if (line.starts_with("UserBufs:")) {
        is_listed = false;
      } else if (is_listed && line.find("<none>") == std::string::npos) {
        ++counts.back();
      }
    }
  }
  return counts;
}

// What the kernel does in its own time.
bool comes_true_within(std::chrono::seconds patience, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// As soon as whoever had the file open and locked is gone.
bool can_be_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool locked =
      comes_true_within(std::chrono::seconds(5), [&] { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; });
  ::close(descriptor);
  return locked;
}

// Also to those that are taken later: a thread that several databases share was started by the first of them.
TEST_F(PosixEnvTest, StepsOfARingHaveAllLocksReferredTo) {
  if (!host_has_io_uring()) {
    GTEST_SKIP() << "this host refuses io_uring";
  }
  PosixEnv env(true);
  std::unique_ptr<FileLock> first;
  ASSERT_TRUE(env.lock_file(path("first"), &first).ok());
  auto worker = env.start_worker("ring", 4, [](IoQueue&) { return NextStep::on_event(); });
  EXPECT_EQ(registered_files_of_rings(), std::vector<unsigned>{1});
  const auto refers_to = [&](unsigned locks) {
    worker->wake();
    return comes_true_within(std::chrono::seconds(5),
                             [&] { return registered_files_of_rings() == std::vector<unsigned>{locks}; });
  };
  std::unique_ptr<FileLock> second;
  ASSERT_TRUE(env.lock_file(path("second"), &second).ok());
  EXPECT_TRUE(refers_to(2));
  first.reset();
  EXPECT_TRUE(refers_to(1));
  second.reset();
  EXPECT_TRUE(refers_to(0));
}

TEST_F(PosixEnvTest, ALockThatNoRingCouldReferToIsRefused) {
  PosixEnv env(true);
  std::vector<std::unique_ptr<FileLock>> locks(HeldLocks::kMax);
  for (size_t i = 0; i < locks.size(); ++i) {
    ASSERT_TRUE(env.lock_file(path("lock" + std::to_string(i)), &locks[i]).ok());
  }
  std::unique_ptr<FileLock> one_more;
  EXPECT_FALSE(env.lock_file(path("one_more"), &one_more).ok());
  locks.front().reset();
  EXPECT_TRUE(env.lock_file(path("one_more"), &one_more).ok());
}

TEST_F(PosixEnvTest, RingThatIsShutDownRefersToNoLock) {
  if (!host_has_io_uring()) {
    GTEST_SKIP() << "this host refuses io_uring";
  }
  // A pipe in place of the lock file: it tells when the last reference to its end is gone.
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  HeldLocks locks;
  locks.add(ends[1]);
  std::unique_ptr<WorkerQueue> ring;
  ASSERT_TRUE(IoRing::create(4, &locks, &ring).ok());
  locks.give_up(ends[1]);
  char byte = 0;
  EXPECT_LT(::read(ends[0], &byte, 1), 0) << "the ring holds the other end";
  ring->shut_down();
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST_F(PosixEnvTest, ReadsLeaveNoFileOpen) {
  // The kernel hands reads of such a file to workers of its own, which let go of it when the reader goes on already.
  const std::string path = "/proc/self/stat";
  constexpr int kRounds = 20000;
  AlignedBuffer bytes(4096);
  for (int round = 0; round < kRounds; ++round) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(PosixFile::open(path, {.read_only = true, .direct = false}, &file).ok());
    ASSERT_EQ(::flock(static_cast<PosixFile&>(*file).descriptor(), LOCK_EX), 0);
    std::vector<ReadRequest> requests(8, {file.get(), 0, 1, bytes.data(), {}});
    read_all(requests, [](ReadRequest& request) { EXPECT_TRUE(request.result.ok()); });
    file.reset();
    ASSERT_TRUE(can_be_locked(path)) << "after " << round << " rounds";
  }
}

// Writes under the lock until it is killed; never returns.
[[noreturn]] void write_under_lock(const std::string& folder, int ready) {
  PosixEnv env(true);
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<File> file;
  if (!env.lock_file(folder + "/lock", &lock).ok() || !env.open_file(folder + "/data", {.create = true}, &file).ok()) {
    ::_exit(1);
  }
  AlignedBuffer data;
  data.append(std::string(1 << 20, 'x'));
  std::vector<IoRequest> writes(16);
  bool started = false;
  auto worker = env.start_worker("writer", 16, [&](IoQueue& io) {
    std::vector<IoRequest*> again;
    io.reap(&again);
    for (size_t i = 0; !started && i < writes.size(); ++i) {
      writes[i].file = file.get();
      writes[i].offset = i << 20;
      writes[i].buffers = {{data.data(), data.size()}};
      again.push_back(&writes[i]);
    }
    started = true;
    for (IoRequest* request : again) {
      io.submit(request);
    }
    return NextStep::on_event();
  });
  [[maybe_unused]] const ssize_t told = ::write(ready, "r", 1);
  for (;;) {
    ::pause();
  }
}

TEST_F(PosixEnvTest, LockOfAKilledProcessIsGivenUp) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    write_under_lock(m_folder, ready[1]);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  PosixEnv hasty(true, std::chrono::milliseconds(0));
  PosixEnv patient(true, std::chrono::seconds(30));
  std::unique_ptr<FileLock> lock;
  EXPECT_EQ(hasty.lock_file(path("lock"), &lock).code(), Status::Code::busy);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  // The kernel gives it up once the last write has ended, which may be after the process has.
  const Status status = patient.lock_file(path("lock"), &lock);
  EXPECT_TRUE(status.ok()) << status.to_string();
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(PosixEnvTest, LockThatIsGivenUpSoonIsWaitedFor) {
  PosixEnv env(true);
  std::unique_ptr<FileLock> dying;
  ASSERT_TRUE(env.lock_file(path("lock"), &dying).ok());
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    dying.reset();
  });
  std::unique_ptr<FileLock> lock;
  EXPECT_TRUE(env.lock_file(path("lock"), &lock).ok());
  end.join();
}

TEST_F(PosixEnvTest, MountPointAndDeviceAreFound) {
  PosixEnv env(true);
  FileSystemInfo info;
  ASSERT_TRUE(env.file_system_info(m_folder, &info).ok());
  EXPECT_EQ(m_folder.rfind(info.mount_point, 0), 0U) << info.mount_point;
  if (!info.device.empty()) {
    EXPECT_TRUE(fs::exists("/sys/block/" + info.device)) << info.device;
  }
}

TEST_F(PosixEnvTest, WhereDirectIoIsMissingTheErrorSaysWhatToUse) {
  PosixEnv env(true);
  std::unique_ptr<File> file;
  const Status status = env.open_file("/proc/self/status", {.read_only = true}, &file);
  EXPECT_EQ(status.code(), Status::Code::unsupported) << status.to_string();
  EXPECT_NE(status.message().find("ext4"), std::string::npos);
}

// ---- links and owners

TEST_F(PosixEnvTest, NoLinkIsFollowed) {
  std::ofstream(path("target")) << "target";
  fs::create_symlink(path("target"), path("link"));
  fs::create_symlink(path("nowhere"), path("dangling"));
  PosixEnv env(true);
  std::unique_ptr<File> file;
  std::unique_ptr<FileLock> lock;
  for (const char* name : {"link", "dangling"}) {
    for (const bool create : {false, true}) {
      const Status status = env.open_file(path(name), {.create = create, .direct = false}, &file);
      EXPECT_EQ(ELOOP, status.error_number()) << status.to_string();
      EXPECT_NE(std::string::npos, status.message().find(path(name) + " is a symbolic link")) << status.to_string();
    }
    EXPECT_EQ(ELOOP, env.lock_file(path(name), &lock).error_number());
    EXPECT_TRUE(env.exists(path(name)));
  }
  EXPECT_FALSE(fs::exists(path("nowhere")));
}

// What cannot be looked at may well be there.
TEST_F(PosixEnvTest, OnlyWhatTheHostCallsMissingIsMissing) {
  fs::create_symlink(path("loop"), path("loop"));
  PosixEnv env(true);
  EXPECT_FALSE(env.exists(path("nothing")));
  EXPECT_FALSE(env.exists(path("nothing/below")));
  EXPECT_TRUE(env.exists(path("loop/below")));
  EXPECT_TRUE(env.exists(path(std::string(1000, 'x'))));
}

TEST_F(PosixEnvTest, WhatRootMakesBelongsToTheOwnerOfItsDirectory) {
  constexpr uid_t kUser = 64045;
  constexpr gid_t kGroup = 64046;
  if (::geteuid() != 0 || ::chown(m_folder.c_str(), kUser, kGroup) != 0) {
    GTEST_SKIP() << "this needs root";
  }
  PosixEnv env(true);
  const mode_t mask = ::umask(0777);
  std::unique_ptr<File> file;
  std::unique_ptr<FileLock> lock;
  EXPECT_TRUE(env.open_file(path("file"), {.create = true, .direct = false}, &file).ok());
  EXPECT_TRUE(env.open_file(path("new"), {.create = true, .exclusive = true, .direct = false}, &file).ok());
  EXPECT_TRUE(env.lock_file(path("lock"), &lock).ok());
  ::umask(0077);
  EXPECT_TRUE(env.create_directory(path("folder")).ok());
  EXPECT_TRUE(env.open_file(path("folder/file"), {.create = true, .direct = false}, &file).ok());
  ::umask(mask);
  for (const char* name : {"file", "new", "lock", "folder", "folder/file"}) {
    struct stat status{};
    ASSERT_EQ(0, ::stat(path(name).c_str(), &status)) << name;
    EXPECT_EQ(kUser, status.st_uid) << name;
    EXPECT_EQ(kGroup, status.st_gid) << name;
    EXPECT_EQ(S_ISDIR(status.st_mode) ? 0700u : 0600u, status.st_mode & 07777u) << name;
  }
}

// Whose file it is stays so: it may be a second name of one that lies elsewhere.
TEST_F(PosixEnvTest, AFileThatIsThereKeepsItsOwner) {
  std::ofstream(path("file")) << "root's";
  if (::geteuid() != 0 || ::chown(m_folder.c_str(), 64045, 64045) != 0) {
    GTEST_SKIP() << "this needs root";
  }
  PosixEnv env(true);
  std::unique_ptr<File> file;
  EXPECT_TRUE(env.open_file(path("file"), {.create = true, .direct = false}, &file).ok());
  struct stat status{};
  ASSERT_EQ(0, ::stat(path("file").c_str(), &status));
  EXPECT_EQ(0u, status.st_uid);
}

}  // namespace
}  // namespace vtkv
