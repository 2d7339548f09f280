// SPDX-License-Identifier: LGPL-2.1-or-later
// What the collector of the value log could not empty: each segment is tried again by itself, after a pause that
// doubles from one failure to the next. So damage keeps few segments from being emptied, costs little reading in vain,
// and is over soon after its cause is.
//
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "vtkv/status.h"

namespace vtkv {

class SegmentQuarantine {
 public:
  static constexpr std::chrono::microseconds kFirstPause{10'000'000};
  static constexpr std::chrono::microseconds kPauseMost{3'600'000'000};

  // It failed, perhaps again.
  void add(uint64_t epoch, const Status& status, uint64_t now_us);
  // It succeeded, or need not be tried any more. False: it was not here.
  bool remove(uint64_t epoch);
  bool contains(uint64_t epoch) const { return m_held.contains(epoch); }
  // The one that may be tried again and has been due for longest, if there is one, of those whose newest failure is
  // among the first `failures`.
  std::optional<uint64_t> due(uint64_t now_us, uint64_t failures = UINT64_MAX) const;
  // Until the next is due; none, when nothing is held.
  std::optional<std::chrono::microseconds> wait(uint64_t now_us) const;
  // Somebody waits: all are due.
  void hurry(uint64_t now_us);
  uint64_t failures() const { return m_failures; }  // ever
  // Why the one that failed last is held; ok, when nothing is.
  const Status& status() const;

 private:
  struct Held {
    Status status;
    std::chrono::microseconds pause{0};
    uint64_t due_us = 0;
    uint64_t order = 0;  // of its newest failure
  };

  std::map<uint64_t, Held> m_held;  // by epoch
  uint64_t m_failures = 0;
};

}  // namespace vtkv
