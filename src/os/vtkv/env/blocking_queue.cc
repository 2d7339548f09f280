// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/blocking_queue.h"

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

Status run(const IoRequest& request) {
  if (request.op == IoRequest::Op::sync) {
    return request.file->sync();
  }
  uint64_t offset = request.offset;
  for (const iovec& buffer : request.buffers) {
    auto* bytes = static_cast<char*>(buffer.iov_base);
    VTKV_RETURN_IF_ERROR(request.op == IoRequest::Op::read ? request.file->read(offset, buffer.iov_len, bytes)
                                                           : request.file->write(offset, bytes, buffer.iov_len));
    offset += buffer.iov_len;
  }
  return {};
}

}  // namespace

void BlockingQueue::submit(IoRequest* request) {
  VTKV_ASSERT(m_depth != 0);
  m_pending.push_back(request);
}

void BlockingQueue::reap(std::vector<IoRequest*>* completed) {
  completed->insert(completed->end(), m_completed.begin(), m_completed.end());
  m_completed.clear();
}

void BlockingQueue::flush() {
  for (IoRequest* request : m_pending) {
    request->result = run(*request);
    m_completed.push_back(request);
  }
  m_pending.clear();
}

void BlockingQueue::wait(std::optional<std::chrono::microseconds> limit) {
  flush();
  if (!m_completed.empty()) {
    return;
  }
  MutexLock lock(m_mutex);
  const auto woken = [this]() REQUIRES(m_mutex) { return m_woken; };
  if (limit.has_value()) {
    m_condition.wait_for(lock, *limit, woken);
  } else {
    m_condition.wait(lock, woken);
  }
}

void BlockingQueue::accept_wakes() {
  const MutexLock lock(m_mutex);
  m_woken = false;
}

void BlockingQueue::wake() {
  const MutexLock lock(m_mutex);
  m_woken = true;
  m_condition.notify_one();
}

}  // namespace vtkv
