// SPDX-License-Identifier: LGPL-2.1-or-later
// A disk that fails, or is slow, when it is told to.
//
//   fault_disk --image FILE --fuse FD --socket PATH
//
// Serves the requests of the FUSE mount behind FD, which is one regular file (root mode S_IFREG), with the content of
// FILE: a loop device over that file is the disk. fault_disk.py mounts, starts and asks it. Several requests are served
// at a time; FILE is read and written past the page cache, and a flush of the loop device is an fdatasync of FILE.
//
// It is told what to do at PATH, a Unix socket: one line for a connection, answered by one line of JSON, which is
// {"error": "..."} where the line is not understood.
//
//   fail KIND NTH TIMES RANGES               KIND is read, write or sync; RANGES are one or more of OFFSET LENGTH, in
//                                            bytes, or the word disk: all of it. Of the requests of this kind that
//                                            touch one of the ranges, the NTH (from 1) fails with EIO, and those after
//                                            it, TIMES in all; TIMES 0: for ever. A sync touches what was written since
//                                            the last one that did not fail.
//   sync_delay MILLISECONDS                  each sync takes so much longer
//   limit OPERATIONS BYTES                   reads and writes in a second; 0: as many as there come
//   clear                                    none of the above any more; answered by the status as it was, and no
//                                            request fails after that
//   status                                   {"reads": N, "writes": N, "syncs": N, and of the `fail` lines since the
//                                            last clear, in order, "rules": [{"seen": N, "failed": N, "first":
//                                            OFFSET}]}
// All other orders are answered by the status, too. A line that does not come within some seconds is given up.
//
// A write that fails has changed nothing; what a failed sync did not flush is there all the same. It ends when nobody
// uses the mount any more, and by no signal but SIGKILL: what lies on the disk could not be unmounted in peace.

#define FUSE_USE_VERSION 317

#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse_lowlevel.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRequestMax = 1u << 20;
constexpr size_t kAlignment = 4096;
constexpr unsigned kThreads = 32;  // one that waits serves nobody else
constexpr double kForeverS = 1e9;  // attributes never change
constexpr timeval kPatience{5, 0};  // with who has connected and neither says nor reads anything
constexpr auto kAcceptAgain = std::chrono::milliseconds(50);

enum class Kind { kRead, kWrite, kSync };

struct Range {
  uint64_t offset;
  uint64_t length;

  bool touches(uint64_t from, uint64_t bytes) const { return from < offset + length && offset < from + bytes; }
};

struct Rule {
  Kind kind;
  uint64_t nth;
  uint64_t times;  // 0: for ever
  std::vector<Range> ranges;
  bool whole_disk = false;  // without ranges
  uint64_t seen = 0;
  uint64_t failed = 0;
  uint64_t first = 0;  // where it failed first
  bool is_dirty = false;  // of a sync: one of the ranges was written since the last

  bool touches(uint64_t offset, uint64_t length) const {
    return whole_disk ||
           std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) { return range.touches(offset, length); });
  }

  // A request that touches it: does it fail?
  bool meets(uint64_t offset) {
    ++seen;
    if (seen < nth || (times != 0 && failed == times)) {
      return false;
    }
    first = failed++ == 0 ? offset : first;
    return true;
  }
};

// What the disk was told. Thread-safe; costs a comparison with each range of each rule.
class Orders {
 public:
  bool fails(Kind kind, uint64_t offset, uint64_t length) {
    const std::lock_guard lock(m_mutex);
    bool failed = false;
    for (Rule& rule : m_rules) {
      if (rule.kind == kind && rule.touches(offset, length)) {
        failed |= rule.meets(offset);
      } else if (rule.kind == Kind::kSync && kind == Kind::kWrite && rule.touches(offset, length)) {
        rule.is_dirty = true;
      }
    }
    return failed;
  }

  bool fails_sync() {
    const std::lock_guard lock(m_mutex);
    bool failed = false;
    for (Rule& rule : m_rules) {
      if (rule.kind == Kind::kSync && (rule.is_dirty || rule.whole_disk)) {
        failed |= rule.meets(0);
      }
    }
    for (Rule& rule : m_rules) {
      rule.is_dirty &= failed;
    }
    return failed;
  }

  void wait_for_turn(uint64_t bytes) {
    std::unique_lock lock(m_mutex);
    if (m_operations_per_second == 0 && m_bytes_per_second == 0) {
      return;
    }
    double seconds = m_operations_per_second == 0 ? 0 : 1 / m_operations_per_second;
    seconds = std::max(seconds, m_bytes_per_second == 0 ? 0 : static_cast<double>(bytes) / m_bytes_per_second);
    m_next = std::max(m_next, Clock::now()) +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const Clock::time_point turn = m_next;
    lock.unlock();
    std::this_thread::sleep_until(turn);
  }

  std::chrono::duration<double, std::milli> sync_delay() const {
    return std::chrono::duration<double, std::milli>(m_sync_delay_ms.load());
  }

  // What an order is answered by.
  struct Answer {
    std::string wrong;  // with the order; empty: it was carried out
    std::string rules;  // and what they met: JSON
  };

  // One line of the control socket. No request comes between the order and its answer.
  Answer obey(const std::string& line) {
    const std::lock_guard lock(m_mutex);
    std::istringstream words(line);
    std::string order;
    words >> order;
    if (order == "clear") {
      Answer answer{"", rules_as_json()};
      m_rules.clear();
      m_sync_delay_ms = m_operations_per_second = m_bytes_per_second = 0;
      return answer;
    }
    const std::string wrong = order == "fail"         ? add_rule(words)
                              : order == "sync_delay" ? set_sync_delay(words)
                              : order == "limit"      ? set_limit(words)
                              : order == "status"     ? ""
                                                      : "unknown order: " + order;
    return {wrong, rules_as_json()};
  }

 private:
  static bool is_end(std::istringstream& words) {
    std::string more;
    return !words.fail() && !(words >> more);
  }

  // These hold m_mutex, and return what is wrong, or nothing.

  std::string set_sync_delay(std::istringstream& words) {
    double delay = -1;
    words >> delay;
    if (!is_end(words) || delay < 0) {
      return "sync_delay: give milliseconds";
    }
    m_sync_delay_ms = delay;
    return "";
  }

  std::string set_limit(std::istringstream& words) {
    double operations = -1;
    double bytes = -1;
    words >> operations >> bytes;
    if (!is_end(words) || operations < 0 || bytes < 0) {
      return "limit: give operations and bytes in a second";
    }
    m_operations_per_second = operations;
    m_bytes_per_second = bytes;
    return "";
  }

  std::string add_rule(std::istringstream& words) {
    std::string kind;
    Rule rule{};
    words >> kind >> rule.nth >> rule.times;
    if (words.fail() || rule.nth == 0 || (kind != "read" && kind != "write" && kind != "sync")) {
      return "fail: give read, write or sync, which of them from 1 on, how many times, and ranges";
    }
    rule.kind = kind == "read" ? Kind::kRead : kind == "write" ? Kind::kWrite : Kind::kSync;
    std::string word;
    while (words >> word) {
      Range range{};
      std::istringstream offset(word);
      if (word == "disk" && rule.ranges.empty() && is_end(words)) {
        rule.whole_disk = true;
        break;
      }
      if (!(offset >> range.offset) || !offset.eof() || !(words >> range.length)) {
        return "fail: ranges are pairs of offset and length in bytes";
      }
      rule.ranges.push_back(range);
    }
    if (rule.ranges.empty() && !rule.whole_disk) {
      return "fail: give ranges, or the word disk";
    }
    m_rules.push_back(std::move(rule));
    return "";
  }

  std::string rules_as_json() const {
    std::string text;
    for (const Rule& rule : m_rules) {
      text += fmt::format(R"({}{{"seen": {}, "failed": {}, "first": {}}})", text.empty() ? "" : ", ", rule.seen,
                          rule.failed, rule.first);
    }
    return "[" + text + "]";
  }

  mutable std::mutex m_mutex;  // guards m_rules, the limits, m_next
  std::vector<Rule> m_rules;
  double m_operations_per_second = 0;
  double m_bytes_per_second = 0;
  Clock::time_point m_next;  // when the device is done with what was asked so far
  std::atomic<double> m_sync_delay_ms = 0;
};

struct Disk {
  int image = -1;
  uint64_t bytes = 0;
  Orders orders;
  std::atomic<uint64_t> reads = 0, writes = 0, syncs = 0;

  std::string obey(const std::string& line) {
    const Orders::Answer answer = orders.obey(line);
    if (!answer.wrong.empty()) {
      return fmt::format(R"({{"error": "{}"}})", answer.wrong);
    }
    return fmt::format(R"({{"reads": {}, "writes": {}, "syncs": {}, "rules": {}}})", reads.load(), writes.load(),
                       syncs.load(), answer.rules);
  }
};

Disk& disk_of(fuse_req_t request) { return *static_cast<Disk*>(fuse_req_userdata(request)); }

// Of this thread, and as direct I/O wants it.
char* buffer() {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  thread_local const std::unique_ptr<char, Free> memory(
      static_cast<char*>(std::aligned_alloc(kAlignment, kRequestMax + kAlignment)));
  return memory.get();
}

void on_init(void*, fuse_conn_info* connection) {
  connection->max_write = kRequestMax;
  connection->max_background = 128;
  connection->congestion_threshold = 128;
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  struct stat attributes{};
  attributes.st_ino = inode;
  attributes.st_mode = S_IFREG | 0600;
  attributes.st_nlink = 1;
  attributes.st_size = static_cast<off_t>(disk_of(request).bytes);
  attributes.st_blocks = attributes.st_size / 512;
  attributes.st_blksize = kAlignment;
  fuse_reply_attr(request, &attributes, kForeverS);
}

void on_open(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->direct_io = 1;
  file->parallel_direct_writes = 1;
  fuse_reply_open(request, file);
}

void on_read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  Disk& disk = disk_of(request);
  ++disk.reads;
  disk.orders.wait_for_turn(size);
  if (size > kRequestMax || disk.orders.fails(Kind::kRead, static_cast<uint64_t>(offset), size)) {
    fuse_reply_err(request, EIO);
    return;
  }
  const ssize_t got = ::pread(disk.image, buffer(), size, offset);
  if (got < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_buf(request, buffer(), static_cast<size_t>(got));
  }
}

void on_write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset, fuse_file_info*) {
  Disk& disk = disk_of(request);
  ++disk.writes;
  disk.orders.wait_for_turn(size);
  if (size > kRequestMax || disk.orders.fails(Kind::kWrite, static_cast<uint64_t>(offset), size)) {
    fuse_reply_err(request, EIO);
    return;
  }
  std::memcpy(buffer(), data, size);
  const ssize_t written = ::pwrite(disk.image, buffer(), size, offset);
  if (written < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_write(request, static_cast<size_t>(written));
  }
}

void on_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  Disk& disk = disk_of(request);
  ++disk.syncs;
  std::this_thread::sleep_for(disk.orders.sync_delay());
  if (disk.orders.fails_sync()) {
    fuse_reply_err(request, EIO);
    return;
  }
  fuse_reply_err(request, ::fdatasync(disk.image) == 0 ? 0 : errno);
}

// The loop device asks for holes and zeros. For the image's sake there are none: zeros are written by who wants them.
void on_fallocate(fuse_req_t request, fuse_ino_t, int, off_t, off_t, fuse_file_info*) {
  fuse_reply_err(request, EOPNOTSUPP);
}

void answer(int connection, Disk& disk) {
  // One that says nothing must not keep the others waiting for ever.
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  std::string line;
  char piece[4096];
  while (line.empty() || line.back() != '\n') {
    const ssize_t got = ::read(connection, piece, sizeof piece);
    if (got <= 0) {
      return;
    }
    line.append(piece, static_cast<size_t>(got));
  }
  line.pop_back();
  const std::string said = disk.obey(line) + "\n";
  if (::write(connection, said.data(), said.size()) < 0) {
    std::cerr << "fault_disk: nobody waits for the answer to: " << line << "\n";
  }
}

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  path.copy(address.sun_path, path.size());
  ::unlink(path.c_str());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 8) != 0) {
    return -1;
  }
  return listener;
}

void obey_all(int listener, Disk& disk) {
  while (true) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EINVAL) {
        return;  // shut down
      }
      std::this_thread::sleep_for(kAcceptAgain);  // no descriptor is free, say
      continue;
    }
    answer(connection, disk);
    ::close(connection);
  }
}

int fail(const std::string& what) {
  std::cerr << "fault_disk: " << what << ": " << std::strerror(errno) << "\n";
  return 1;
}

int serve(Disk& disk, const std::string& fuse_fd) {
  fuse_lowlevel_ops operations{};
  operations.init = on_init;
  operations.getattr = on_getattr;
  operations.open = on_open;
  operations.read = on_read;
  operations.write = on_write;
  operations.fsync = on_fsync;
  operations.fallocate = on_fallocate;
  char name[] = "fault_disk";
  char* words[] = {name, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, words);
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, &disk);
  if (session == nullptr || fuse_session_mount(session, ("/dev/fd/" + fuse_fd).c_str()) != 0) {
    return fail("cannot serve the mount of /dev/fd/" + fuse_fd);
  }
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, kThreads);
  fuse_loop_cfg_set_idle_threads(config, kThreads);
  const int ended = fuse_session_loop_mt(session, config);
  fuse_loop_cfg_destroy(config);
  fuse_session_destroy(session);
  return ended == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string image;
  std::string fuse_fd;
  std::string socket_path;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    (option == "--image" ? image : option == "--fuse" ? fuse_fd : socket_path) = argv[i + 1];
  }
  if (argc != 7 || image.empty() || fuse_fd.empty() || socket_path.empty()) {
    std::cerr << "usage: fault_disk --image FILE --fuse FD --socket PATH\n";
    return 2;
  }
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_IO_FLUSHER, 1);  // its own memory must not wait for writes to its own disk
  Disk disk;
  disk.image = ::open(image.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  struct stat found{};
  if (disk.image < 0 || ::fstat(disk.image, &found) != 0) {
    return fail(image);
  }
  disk.bytes = static_cast<uint64_t>(found.st_size);
  const int listener = listen_at(socket_path);
  if (listener < 0) {
    return fail(socket_path);
  }
  std::thread control(obey_all, listener, std::ref(disk));
  const int status = serve(disk, fuse_fd);
  ::shutdown(listener, SHUT_RDWR);
  control.join();
  ::unlink(socket_path.c_str());
  return status;
}
