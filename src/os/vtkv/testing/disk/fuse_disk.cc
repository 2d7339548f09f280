// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/fuse_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace vtkv {

namespace {

constexpr uint32_t kWriteMax = 1u << 20;
constexpr uint64_t kForeverS = 1u << 30;  // attributes never change
constexpr int kAttempts = 500;
constexpr std::chrono::milliseconds kPause{10};

// Serves until the file is unmounted.
class Server {
 public:
  Server(RecordedDisk* disk, int device) : m_disk(disk), m_device(device), m_request(kWriteMax + (64u << 10)) {}

  void run() {
    while (m_is_mounted) {
      if (m_in_flight.empty() || is_waiting()) {
        serve_one();
      } else {
        answer_all();
      }
    }
  }

 private:
  struct InFlight {
    uint64_t unique;
    uint64_t event;
    uint32_t written;  // 0: not a write
  };

  bool is_waiting() {
    pollfd wait{.fd = m_device, .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) > 0;
  }

  void answer_all() {
    for (const InFlight& one : m_in_flight) {
      m_disk->complete(one.event);
    }
    for (const InFlight& one : m_in_flight) {
      const fuse_write_out written{.size = one.written};
      answer(one.unique, 0, &written, one.written == 0 ? 0 : sizeof written);
    }
    m_in_flight.clear();
  }

  void answer(uint64_t unique, int error, const void* data = nullptr, size_t length = 0) {
    fuse_out_header header{.len = static_cast<uint32_t>(sizeof header + length), .error = -error, .unique = unique};
    iovec buffers[] = {{&header, sizeof header}, {const_cast<void*>(data), length}};
    // ENOENT: the request was interrupted, and nobody waits for an answer.
    if (::writev(m_device, buffers, length == 0 ? 1 : 2) < 0 && errno == ENODEV) {
      m_is_mounted = false;
    }
  }

  void start_event(uint64_t event, uint32_t written) {
    if (event == kDiskNever) {
      answer(m_header.unique, EIO);
    } else {
      m_in_flight.push_back({m_header.unique, event, written});
    }
  }

  void serve_one() {
    const ssize_t got = ::read(m_device, m_request.data(), m_request.size());
    if (got < static_cast<ssize_t>(sizeof m_header)) {
      m_is_mounted = got >= 0 || errno == EINTR || errno == EAGAIN || errno == ENOENT;
      return;
    }
    std::memcpy(&m_header, m_request.data(), sizeof m_header);
    dispatch(m_request.data() + sizeof m_header);
  }

  void dispatch(const char* body) {
    switch (m_header.opcode) {
      case FUSE_INIT:
        return init(*reinterpret_cast<const fuse_init_in*>(body));
      case FUSE_GETATTR:
        return attributes();
      case FUSE_OPEN: {
        const fuse_open_out out{.fh = 0, .open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES};
        return answer(m_header.unique, 0, &out, sizeof out);
      }
      case FUSE_READ:
        return read(*reinterpret_cast<const fuse_read_in*>(body));
      case FUSE_WRITE: {
        const auto& in = *reinterpret_cast<const fuse_write_in*>(body);
        return start_event(m_disk->begin_write(in.offset, in.size, body + sizeof in), in.size);
      }
      case FUSE_FALLOCATE: {
        // The loop device asks for holes and zeros.
        const auto& in = *reinterpret_cast<const fuse_fallocate_in*>(body);
        return start_event(m_disk->begin_zeros(in.offset, in.length), 0);
      }
      case FUSE_FSYNC:
        return start_event(m_disk->begin_flush(), 0);
      case FUSE_RELEASE:
      case FUSE_FLUSH:
        return answer(m_header.unique, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;  // they want no answer
      case FUSE_DESTROY:
        m_is_mounted = false;
        return answer(m_header.unique, 0);
      default:
        return answer(m_header.unique, ENOSYS);
    }
  }

  void init(const fuse_init_in& in) {
    fuse_init_out out{.major = FUSE_KERNEL_VERSION, .minor = std::min<uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION)};
    out.max_readahead = in.max_readahead;
    out.flags = in.flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES);
    out.max_background = 128;
    out.congestion_threshold = 128;
    out.max_write = kWriteMax;
    out.max_pages = kWriteMax / 4096;
    answer(m_header.unique, 0, &out, sizeof out);
  }

  void attributes() {
    fuse_attr_out out{.attr_valid = kForeverS};
    out.attr.ino = FUSE_ROOT_ID;
    out.attr.size = m_disk->bytes();
    out.attr.blocks = m_disk->bytes() / 512;
    out.attr.mode = S_IFREG | 0600;
    out.attr.nlink = 1;
    out.attr.blksize = kDiskBlockBytes;
    answer(m_header.unique, 0, &out, sizeof out);
  }

  void read(const fuse_read_in& in) {
    m_read.resize(in.size);
    if (m_disk->read(in.offset, in.size, m_read.data())) {
      answer(m_header.unique, 0, m_read.data(), in.size);
    } else {
      answer(m_header.unique, EIO);
    }
  }

  RecordedDisk* const m_disk;
  const int m_device;
  std::vector<char> m_request;
  std::vector<char> m_read;
  fuse_in_header m_header{};
  std::vector<InFlight> m_in_flight;
  bool m_is_mounted = true;
};

// For the signal handler.
const char* s_file = nullptr;
const char* s_mounted_on = nullptr;

// The one that tests was killed. A file system that loses its disk while it is unmounted may wait for it for ever, so a
// process of its own unmounts both while this one goes on serving, until nobody has the file open.
void unmount_all(int) {
  if (::fork() == 0) {
    ::umount2(s_mounted_on, MNT_DETACH);
    ::umount2(s_file, MNT_DETACH);
    ::_exit(0);
  }
}

[[noreturn]] void serve(RecordedDisk* disk, int device) {
  ::signal(SIGINT, SIG_IGN);  // the one that tests ends first
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGCHLD, SIG_IGN);
  ::signal(SIGUSR1, unmount_all);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  ::prctl(PR_SET_IO_FLUSHER, 1);  // its own memory must not wait for writes to its own disk
  Server(disk, device).run();
  ::_exit(0);
}

}  // namespace

Status FuseDisk::start(RecordedDisk* disk, const std::string& path, const std::string& mounted_on,
                       std::unique_ptr<FuseDisk>* started) {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) {
    return Status::from_errno(errno, "cannot open /dev/fuse (load the kernel's module fuse, and be root)");
  }
  const std::string options = fmt::format("fd={},rootmode={:o},user_id=0,group_id=0", device, S_IFREG | 0600);
  if (::mount("recorded_disk", path.c_str(), "fuse", MS_NODEV | MS_NOSUID, options.c_str()) != 0) {
    const Status failed = Status::from_errno(errno, "cannot mount a FUSE file system on " + path);
    ::close(device);
    return failed;
  }
  const pid_t server = ::fork();
  if (server == 0) {
    s_file = path.c_str();
    s_mounted_on = mounted_on.c_str();
    serve(disk, device);
  }
  const int fork_error = errno;
  ::close(device);  // the server's alone: the kernel ends the mount with it
  started->reset(new FuseDisk(path, server));
  return server > 0 ? Status() : Status::from_errno(fork_error, "cannot fork");
}

FuseDisk::~FuseDisk() {
  ::umount2(m_path.c_str(), MNT_DETACH);
  // It ends when the last user has closed the file; a loop device does that in its own time.
  for (int attempt = 0; m_server > 0 && ::waitpid(m_server, nullptr, WNOHANG) == 0; ++attempt) {
    if (attempt == kAttempts) {
      ::kill(m_server, SIGKILL);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace vtkv
