// SPDX-License-Identifier: LGPL-2.1-or-later
// What the scans of a database know of one another, and leave to one another. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "vtkv/blob/relocation.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class ScanHost {
 public:
  virtual ~ScanHost() = default;
  // Relocates values, one behind the other, which were the newest of their keys at `checked`. Those of keys that were
  // written since stay as they are; all do, when the database has more urgent things to write. Never waits.
  virtual void relocate_values(const std::vector<Relocation>& values, SequenceNumber checked) = 0;

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
