// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/io_ring.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "vtkv/env/posix/posix_file.h"
#include "vtkv/env/sync_failures.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

// Direct calls begin after this many quiet syncs in a row.
constexpr unsigned kQuietSyncs = 8;
// A sync that is to be called waits for so many passes of a worker that has other requests' ends to look at.
constexpr unsigned kSyncPassesMax = 8;

size_t total_length(const std::vector<iovec>& buffers) {
  size_t length = 0;
  for (const iovec& buffer : buffers) {
    length += buffer.iov_len;
  }
  return length;
}

int set_up_ring(unsigned entries, io_uring* ring) {
  // Completions are run when this thread asks for them: no interrupts of its step, no waking twice.
  const int result = io_uring_queue_init(
      entries, ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
  if (result != -EINVAL) {
    return result;
  }
  return io_uring_queue_init(entries, ring, 0);  // before Linux 6.1
}

}  // namespace

Status IoRing::create(unsigned depth, const HeldLocks* locks, std::unique_ptr<WorkerQueue>* queue) {
  const int wake_descriptor = ::eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor < 0) {
    return Status::from_errno(errno, "cannot create an eventfd");
  }
  // The constructor owns the descriptor from here; the ring exists once ring_fd is set.
  std::unique_ptr<IoRing> ring(new IoRing(depth, locks, wake_descriptor));
  // Room for every request and the read of the eventfd: the submission queue can never be full.
  int result = set_up_ring(depth + 1, &ring->m_ring);
  if (result < 0) {
    ring->m_ring.ring_fd = -1;
    return Status::from_errno(-result, "cannot set up io_uring");
  }
  // Before Linux 5.11 a wait with a limit ends by a completion of the library's own, which nobody here knows.
  if ((ring->m_ring.features & IORING_FEAT_EXT_ARG) == 0) {
    io_uring_queue_exit(&ring->m_ring);
    ring->m_ring.ring_fd = -1;
    return Status::unsupported("this kernel's io_uring cannot wait for a limited time, which that of Linux 5.11 can");
  }
  // A fork would submit to the ring of its parent. Where the kernel refuses this, nothing is lost but that guard.
  io_uring_ring_dontfork(&ring->m_ring);
  VTKV_RETURN_IF_ERROR(ring->refer_to_locks());
  ring->arm_wake();
  *queue = std::move(ring);
  return {};
}

// The table is of one size from the start: what is in it stays there while others are added. No request uses a file of
// it, so changing it waits for none.
Status IoRing::refer_to_locks() {
  return m_locks->use([this](const HeldLocks::Locks& locks, uint64_t version) -> Status {
    int result = 0;
    if (m_locks_version == 0) {
      const std::vector<int> none(locks.size(), -1);
      result = io_uring_register_files(&m_ring, none.data(), static_cast<unsigned>(none.size()));
    }
    for (unsigned place = 0; place < locks.size() && result >= 0; ++place) {
      if (locks[place].changed > m_locks_version) {
        result = io_uring_register_files_update(&m_ring, place, &locks[place].descriptor, 1);
      }
    }
    if (result < 0) {
      return Status::from_errno(-result, "cannot register the lock files with io_uring");
    }
    m_locks_version = version;
    return {};
  });
}

IoRing::IoRing(unsigned depth, const HeldLocks* locks, int wake_descriptor)
    : m_locks(locks), m_wake_descriptor(wake_descriptor), m_entries(depth) {
  m_ring.ring_fd = -1;
  for (Entry& entry : m_entries) {
    m_free_entries.push_back(&entry);
  }
}

IoRing::~IoRing() {
  shut_down();
  ::close(m_wake_descriptor);
}

size_t IoRing::in_flight() const {
  return m_entries.size() - m_free_entries.size() + m_backlog.size() + m_completed.size() +
         (m_lone_sync != nullptr ? 1 : 0);
}

// A file's own sync may take the file system long: it is called where nothing goes on beside it.
void IoRing::submit(IoRequest* request) {
  const bool is_sync = request->op == IoRequest::Op::sync;
  if (is_sync || (m_lone_sync != nullptr && !m_lone_sync->any_file)) {
    start_lone_sync();  // it is alone no more
  }
  if (is_sync) {
    m_woken_in_sync = false;
    m_sync_passes = 0;
    if (request->any_file || (request->waiters <= 1 && m_free_entries.size() == m_entries.size())) {
      m_lone_sync = request;
      return;
    }
  }
  if (m_free_entries.empty()) {
    m_backlog.push_back(request);
  } else {
    start(request);
  }
}

void IoRing::start(IoRequest* request) {
  Entry* entry = m_free_entries.back();
  m_free_entries.pop_back();
  entry->request = request;
  entry->done = 0;
  entry->rest.clear();
  prepare(entry);
}

io_uring_sqe* IoRing::next_sqe() {
  io_uring_sqe* sqe = io_uring_get_sqe(&m_ring);
  VTKV_ASSERT(sqe != nullptr);
  return sqe;
}

void IoRing::prepare(Entry* entry) {
  const IoRequest& request = *entry->request;
  const int descriptor = static_cast<PosixFile*>(request.file)->descriptor();
  const std::vector<iovec>& buffers = entry->done == 0 ? request.buffers : entry->rest;
  io_uring_sqe* sqe = next_sqe();
  switch (request.op) {
    case IoRequest::Op::read:
      io_uring_prep_readv(sqe, descriptor, buffers.data(), static_cast<unsigned>(buffers.size()),
                          request.offset + entry->done);
      break;
    case IoRequest::Op::write:
      io_uring_prep_writev(sqe, descriptor, buffers.data(), static_cast<unsigned>(buffers.size()),
                           request.offset + entry->done);
      break;
    case IoRequest::Op::sync:
      io_uring_prep_fsync(sqe, descriptor, IORING_FSYNC_DATASYNC);
      break;
  }
  io_uring_sqe_set_data(sqe, entry);
}

void IoRing::arm_wake() {
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_read(sqe, m_wake_descriptor, &m_wake_count, sizeof m_wake_count, 0);
  io_uring_sqe_set_data(sqe, nullptr);
  m_wake_armed = true;
}

void IoRing::collect() {
  io_uring_cqe* completed[32];
  for (;;) {
    const unsigned count = io_uring_peek_batch_cqe(&m_ring, completed, std::size(completed));
    if (count == 0) {
      return;
    }
    for (unsigned i = 0; i < count; ++i) {
      auto* entry = static_cast<Entry*>(io_uring_cqe_get_data(completed[i]));
      const int result = completed[i]->res;
      if (entry == nullptr) {
        m_wake_armed = false;
      } else {
        complete(entry, result);
      }
    }
    io_uring_cq_advance(&m_ring, count);
  }
}

void IoRing::complete(Entry* entry, int result) {
  const IoRequest& request = *entry->request;
  const auto& file = *static_cast<const PosixFile*>(request.file);
  const bool is_sync = request.op == IoRequest::Op::sync;
  if (!is_sync && (result == -EINTR || result == -EAGAIN)) {
    prepare(entry);
    return;
  }
  if (result < 0) {
    const char* action = is_sync ? "sync" : request.op == IoRequest::Op::read ? "read" : "write";
    Status status = file.error(-result, action, request.offset + entry->done);
    finish(entry, is_sync ? note_sync(std::move(status)) : std::move(status));
    return;
  }
  if (!is_sync && transfer_goes_on(entry, static_cast<size_t>(result))) {
    if (result == 0) {
      finish(entry, request.op == IoRequest::Op::read ? file.past_end(request.offset + total_length(request.buffers))
                                                      : file.error(EIO, "write", request.offset + entry->done));
    } else {
      prepare(entry);
    }
    return;
  }
  if (is_sync) {
    note_sync_end();
  }
  finish(entry, Status());
}

// Accounts for what was transferred; false when that was the end of the request.
bool IoRing::transfer_goes_on(Entry* entry, size_t transferred) {
  const std::vector<iovec>& buffers = entry->request->buffers;
  entry->done += transferred;
  if (entry->done >= total_length(buffers)) {
    return false;
  }
  entry->rest.clear();
  size_t skip = entry->done;
  for (const iovec& buffer : buffers) {
    const size_t skipped = std::min(skip, buffer.iov_len);
    skip -= skipped;
    if (skipped < buffer.iov_len) {
      entry->rest.push_back({static_cast<char*>(buffer.iov_base) + skipped, buffer.iov_len - skipped});
    }
  }
  return true;
}

void IoRing::finish(Entry* entry, Status status) {
  entry->request->result = std::move(status);
  m_completed.push_back(entry->request);
  entry->request = nullptr;
  m_free_entries.push_back(entry);
  if (!m_backlog.empty()) {
    IoRequest* next = m_backlog.front();
    m_backlog.pop_front();
    start(next);
  }
}

// Locks that were taken since are those of files that the step to come may write to. Where the kernel has no memory for
// them at present, it is tried again.
void IoRing::accept_wakes() {
  m_woken_in_sync |= m_woken.exchange(false);
  if (m_locks->version() != m_locks_version) {
    (void)refer_to_locks();
  }
}

void IoRing::start_lone_sync() {
  if (m_lone_sync != nullptr) {
    IoRequest* request = std::exchange(m_lone_sync, nullptr);
    if (m_free_entries.empty()) {
      m_backlog.push_front(request);
    } else {
      start(request);
    }
  }
}

bool IoRing::is_quiet() const { return m_quiet_syncs >= kQuietSyncs && !m_woken.load(); }

bool IoRing::call_lone_sync() {
  if (m_lone_sync == nullptr || !is_quiet()) {
    return false;
  }
  submit_prepared();
  IoRequest* request = std::exchange(m_lone_sync, nullptr);
  request->result = request->file->sync();
  m_completed.push_back(request);
  note_sync_end();
  return true;
}

void IoRing::note_sync_end() {
  const bool quiet = !m_woken_in_sync && !m_woken.load();
  m_quiet_syncs = quiet ? m_quiet_syncs + 1 : 0;
}

void IoRing::reap(std::vector<IoRequest*>* completed) {
  collect();
  completed->insert(completed->end(), m_completed.begin(), m_completed.end());
  m_completed.clear();
}

void IoRing::flush() {
  start_lone_sync();
  submit_prepared();
}

void IoRing::submit_prepared() {
  if (!m_wake_armed) {
    arm_wake();
  }
  if (io_uring_sq_ready(&m_ring) != 0) {
    io_uring_submit(&m_ring);
  }
}

void IoRing::wait(std::optional<std::chrono::microseconds> limit) {
  const bool awaits_all = std::exchange(m_awaits_all, false) && is_quiet();
  collect();
  if (!m_completed.empty()) {
    if (!is_quiet() || ++m_sync_passes > kSyncPassesMax) {
      start_lone_sync();
    }
    submit_prepared();
    return;
  }
  if (call_lone_sync()) {
    return;
  }
  start_lone_sync();
  if (!m_wake_armed) {
    arm_wake();
  }
  // With wake(): each side writes its flag before it reads the other's, so one of them sees the other.
  m_sleeping.store(true);
  if (m_woken.load()) {
    m_sleeping.store(false);
    flush();
    return;
  }
  const auto at_kernel = static_cast<unsigned>(m_entries.size() - m_free_entries.size());
  const unsigned wanted = awaits_all && m_backlog.empty() ? std::max(1u, at_kernel) : 1;
  io_uring_cqe* first = nullptr;
  if (limit.has_value()) {
    const auto microseconds = limit->count();
    __kernel_timespec timeout{microseconds / 1000000, microseconds % 1000000 * 1000};
    io_uring_submit_and_wait_timeout(&m_ring, &first, wanted, &timeout, nullptr);
  } else {
    io_uring_submit_and_wait(&m_ring, wanted);
  }
  m_sleeping.store(false);
  if (wanted > 1 && m_woken.load()) {
    m_quiet_syncs = 0;
  }
}

void IoRing::shut_down() {
  if (m_ring.ring_fd < 0) {
    return;
  }
  start_lone_sync();
  while (m_free_entries.size() < m_entries.size()) {
    io_uring_submit_and_wait(&m_ring, 1);
    collect();
  }
  // The armed read writes into this object: end it before the memory goes.
  const uint64_t one = 1;
  while (m_wake_armed && ::write(m_wake_descriptor, &one, sizeof one) == sizeof one) {
    io_uring_submit_and_wait(&m_ring, 1);
    collect();
  }
  // The kernel ends a ring in its own time; until then the file system of the lock files could not be unmounted.
  io_uring_unregister_files(&m_ring);
  io_uring_queue_exit(&m_ring);
  m_ring.ring_fd = -1;
}

void IoRing::wake() {
  if (m_woken.exchange(true)) {
    return;  // somebody else has woken it already
  }
  if (m_sleeping.load()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(m_wake_descriptor, &one, sizeof one);
  }
}

}  // namespace vtkv
