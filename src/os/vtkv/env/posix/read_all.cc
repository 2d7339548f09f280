// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/read_all.h"

#include <liburing.h>

#include <cerrno>
#include <memory>
#include <span>

#include "vtkv/env/posix/posix_file.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

using Ended = std::function<void(ReadRequest&)>;

void read_here(ReadRequest& request) {
  request.result = request.file->read(request.offset, request.length, request.destination);
}

// A thread's own. Only PosixFiles.
class ReadRing {
 public:
  // nullptr when the host refuses io_uring.
  static std::unique_ptr<ReadRing> create();
  ~ReadRing() { io_uring_queue_exit(&m_ring); }

  ReadRing(const ReadRing&) = delete;
  ReadRing& operator=(const ReadRing&) = delete;

  void read(std::span<ReadRequest> requests, const Ended& ended);

 private:
  static constexpr unsigned kDepth = 32;  // requests at the kernel at once

  explicit ReadRing(const io_uring& ring) : m_ring(ring) {}
  void prepare(ReadRequest* request);

  io_uring m_ring;
};

std::unique_ptr<ReadRing> ReadRing::create() {
  io_uring ring{};
  // Completions are run whenever this thread is in the kernel, not only when it asks for them (DEFER_TASKRUN): where a
  // worker of the kernel lets go of a request last, the file would stay open until this thread's next reads, if any.
  int result = io_uring_queue_init(kDepth, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN);
  if (result == -EINVAL) {  // before Linux 6.0
    result = io_uring_queue_init(kDepth, &ring, 0);
  }
  return result < 0 ? nullptr : std::unique_ptr<ReadRing>(new ReadRing(ring));
}

void ReadRing::prepare(ReadRequest* request) {
  io_uring_sqe* const entry = io_uring_get_sqe(&m_ring);
  VTKV_ASSERT(entry != nullptr);
  io_uring_prep_read(entry, static_cast<PosixFile*>(request->file)->descriptor(), request->destination,
                     static_cast<unsigned>(request->length), request->offset);
  io_uring_sqe_set_data(entry, request);
}

void ReadRing::read(std::span<ReadRequest> requests, const Ended& ended) {
  size_t started = 0;
  size_t under_way = 0;
  while (started < requests.size() || under_way > 0) {
    for (; started < requests.size() && under_way < kDepth; ++started, ++under_way) {
      prepare(&requests[started]);
    }
    io_uring_submit_and_wait(&m_ring, 1);
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&m_ring, &entry) == 0) {
      auto* const request = static_cast<ReadRequest*>(io_uring_cqe_get_data(entry));
      const int transferred = entry->res;
      io_uring_cqe_seen(&m_ring, entry);
      --under_way;
      request->result = Status();
      if (transferred < 0 || static_cast<size_t>(transferred) != request->length) {
        read_here(*request);  // which tells what is the matter
      }
      ended(*request);
    }
  }
}

}  // namespace

void read_all(std::span<ReadRequest> requests, const Ended& ended) {
  if (requests.size() > 1 && dynamic_cast<PosixFile*>(requests.front().file) != nullptr) {
    thread_local const std::unique_ptr<ReadRing> ring = ReadRing::create();
    if (ring) {
      ring->read(requests, ended);
      return;
    }
  }
  for (ReadRequest& request : requests) {
    read_here(request);
    ended(request);
  }
}

}  // namespace vtkv
