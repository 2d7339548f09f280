// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes that lie both in memory and, once their record is written, in the log; the copy in memory may be given up
// then. Readers on any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "vtkv/mem/value_pointer.h"
#include "vtkv/util/invariants.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class LoggedBytes {
 public:
  virtual ~LoggedBytes() = default;

  // Keeps the bytes until unpin(). False when they were released: read them from the log.
  bool pin() {
    if (m_pins.fetch_add(1, std::memory_order_acquire) & kReleased) {
      m_pins.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    return true;
  }
  void unpin() {
    const uint32_t before = m_pins.fetch_sub(1, std::memory_order_release);
    VTKV_ASSERT(before > 0 && before < kReleased);
  }
  // False when somebody has pinned them. REQUIRES: their record is written; one caller at a time.
  bool release() {
    uint32_t none = 0;
    if (!m_pins.compare_exchange_strong(none, kReleased, std::memory_order_acq_rel)) {
      return (none & kReleased) != 0;
    }
    free_bytes();
    return true;
  }

  // Where they begin in the log, once the record is formed.
  LogAddress address;
  SequenceNumber last_sequence = 0;  // of what is in them; the writer's

 private:
  static constexpr uint32_t kReleased = 1u << 31;
  virtual void free_bytes() = 0;

  std::atomic<uint32_t> m_pins{0};
};

}  // namespace vtkv
