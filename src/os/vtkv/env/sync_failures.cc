// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/sync_failures.h"

#include <atomic>

namespace vtkv {

namespace {

std::atomic<uint64_t> failures{0};

}  // namespace

Status note_sync(Status status) {
  if (status.ok()) {
    return status;
  }
  failures.fetch_add(1);
  return status.is_no_space()
             ? Status::make(Status::Code::io_error, std::string(status.message()), status.error_number())
             : status;
}

SyncWatch::SyncWatch() : m_failures_before(failures.load()) {}

Status SyncWatch::check() const {
  return failures.load() == m_failures_before
             ? Status()
             : Status::make(Status::Code::io_error,
                            "a sync of another file has failed: what it covered may be lost, so that no later one can "
                            "be believed",
                            EIO);
}

}  // namespace vtkv
