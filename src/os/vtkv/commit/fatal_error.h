// SPDX-License-Identifier: LGPL-2.1-or-later
// Why a database stopped: the first error after which nothing is written, flushed or acknowledged any more.
//
// Thread-safe. Its lock is held for a moment; whether there is an error is asked without it.
#pragma once

#include <atomic>
#include <cerrno>
#include <string>

#include "vtkv/status.h"
#include "vtkv/util/mutex.h"

namespace vtkv {

class FatalError {
 public:
  // Later ones change nothing.
  void set(const Status& status) EXCLUDES(m_lock) {
    {
      MutexLock lock(m_lock);
      if (m_status.ok()) {
        m_status = status;
      }
    }
    m_is_set.store(true);
  }
  bool is_set() const { return m_is_set.load(); }
  // What whoever waits, or wants to write, is told. The error number is the first one's: the remedy hangs on it.
  Status status() const EXCLUDES(m_lock) {
    MutexLock lock(m_lock);
    return Status::make(Status::Code::failed, "the database stopped: " + std::string(m_status.message()),
                        m_status.error_number() > 0 ? m_status.error_number() : EIO);
  }

 private:
  mutable Mutex m_lock;
  Status m_status GUARDED_BY(m_lock);
  std::atomic<bool> m_is_set{false};
};

}  // namespace vtkv
