// SPDX-License-Identifier: LGPL-2.1-or-later
// How long the scans of a database are, of late: a scan reads ahead at once where others were long. Thread-safe,
// without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace vtkv {

class ScanLengths {
 public:
  // Steps forward from where a scan began, in the mean of late.
  size_t usual_steps() const { return m_sum.load(std::memory_order_relaxed) / kOf; }
  void scan_ended(size_t steps) {
    const size_t sum = m_sum.load(std::memory_order_relaxed);
    m_sum.store(sum - sum / kOf + std::min(steps, kStepsMost), std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kOf = 16;  // scans
  static constexpr size_t kStepsMost = 512;  // one very long scan says little of the next

  std::atomic<size_t> m_sum{0};  // of scans that end at the same time one may be forgotten
};

}  // namespace vtkv
