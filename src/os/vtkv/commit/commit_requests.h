// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commit pipeline asks of its I/O queue. Requests are used again.
//
// Not thread-safe: the commit worker's. A request's memory stays as long as this object, which outlives the queue.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/env.h"

namespace vtkv {

struct CommitGroup;
struct DequeuedWrite;

struct CommitRequest {
  enum class Kind { data, log, sync } kind = Kind::data;
  IoRequest io;  // its owner is this
  std::vector<DequeuedWrite*> dequeued;  // of data
  size_t bytes = 0;                      // of data
  bool primed = false;                   // likewise
  CommitGroup* group = nullptr;          // of a log write
};

class CommitRequests {
 public:
  // To be filled in and submitted.
  CommitRequest* take(CommitRequest::Kind kind, IoRequest::Op op, File* file, uint64_t offset) {
    if (m_spare.empty()) {
      m_spare.push_back(m_all.emplace_back(std::make_unique<CommitRequest>()).get());
    }
    CommitRequest* const request = m_spare.back();
    m_spare.pop_back();
    request->kind = kind;
    request->io.owner = request;
    request->io.op = op;
    request->io.file = file;
    request->io.offset = offset;
    request->io.any_file = false;
    request->io.waiters = 0;
    return request;
  }
  // It was reaped.
  void recycle(CommitRequest* request) {
    request->io.buffers.clear();
    request->io.result = Status();
    request->dequeued.clear();
    request->bytes = 0;
    m_spare.push_back(request);
  }

 private:
  std::vector<std::unique_ptr<CommitRequest>> m_all;  // ever made
  std::vector<CommitRequest*> m_spare;
};

}  // namespace vtkv
