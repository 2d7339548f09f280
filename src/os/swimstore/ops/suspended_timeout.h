// SPDX-License-Identifier: LGPL-2.1-or-later
// While it lives, the heartbeat of an op thread does not count: the thread waits on purpose, and must not be taken for
// one that hangs.
#pragma once

#include "common/HBHandle.h"

namespace swimstore {

class SuspendedTimeout {
 public:
  // handle: nullptr for threads that have none.
  explicit SuspendedTimeout(HBHandle* handle) : m_handle(handle) {
    if (m_handle != nullptr) {
      m_handle->suspend_tp_timeout();
    }
  }
  ~SuspendedTimeout() {
    if (m_handle != nullptr) {
      m_handle->reset_tp_timeout();
    }
  }
  SuspendedTimeout(const SuspendedTimeout&) = delete;
  SuspendedTimeout& operator=(const SuspendedTimeout&) = delete;

 private:
  HBHandle* const m_handle;
};

}  // namespace swimstore
