// SPDX-License-Identifier: LGPL-2.1-or-later
// Collecting the garbage of the value log (value_gc.h) when somebody asks.

#include "vtkv/db/db_impl.h"
#include "vtkv/tree/tree_failure.h"

namespace vtkv {

Status DbImpl::collect_garbage(bool full) {
  VTKV_RETURN_IF_ERROR(flush());
  if (full) {
    VTKV_RETURN_IF_ERROR(compact());  // the account of what lives is exact then
  }
  VTKV_RETURN_IF_ERROR(run_gc(full ? GcRequest::full : GcRequest::round));
  VTKV_RETURN_IF_ERROR(flush());  // a checkpoint above the new addresses
  VTKV_RETURN_IF_ERROR(run_gc(GcRequest::settle));
  if (full) {
    const Status status = m_tree->give_back_zones();
    stop_with_tree(*m_tree, m_pipeline.get(), m_waiters.get());
    VTKV_RETURN_IF_ERROR(status);
    const uint64_t number = m_log->request_removal();
    VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_log->removed() >= number; }));
    VTKV_RETURN_IF_ERROR(m_errors.status(kSegmentsWork));
  }
  return Status();
}

Status DbImpl::run_gc(GcRequest what) {
  const uint64_t number = m_gc->request(what);
  m_workers.wake(Workers::Role::gc);
  VTKV_RETURN_IF_ERROR(m_waiters->wait_until([&] { return m_gc->served() >= number; }));
  return m_gc->error();
}

NextStep DbImpl::log_step() {
  const uint64_t before = m_log->removed();
  const NextStep next = m_log->step();
  if (m_log->removed() != before) {
    m_waiters->notify();
  }
  return next;
}

NextStep DbImpl::gc_step(IoQueue& io) {
  if (m_pipeline->failed() || m_workers.stopping()) {
    m_gc->reap(io);  // or the worker would be woken for it again and again
    return NextStep::on_event();
  }
  return m_gc->step(io);
}

}  // namespace vtkv
