// SPDX-License-Identifier: LGPL-2.1-or-later
// How often each magnitude occurred, of latencies or sizes.
//
// Buckets are log-linear: 16 per power of two, so a percentile is at most 1/16 too high. Values below 16
// are exact. Thread-safe and lock-free: adding is one relaxed atomic addition per counter, and a query
// while others add sees some of what they add.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vtkv {

class Histogram {
 public:
  void add(uint64_t value);
  // Adds all of the other's counts.
  void merge(const Histogram& other);

  uint64_t count() const { return m_count.load(std::memory_order_relaxed); }
  uint64_t max() const { return m_max.load(std::memory_order_relaxed); }
  // The upper bound of the bucket that holds the given fraction (0.99: p99) of the values, never above
  // max(); 0 when empty.
  uint64_t percentile(double fraction) const;

 private:
  static constexpr unsigned kSubBits = 4;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  static size_t bucket_of(uint64_t value);
  static uint64_t upper_bound_of(size_t bucket);
  void raise_max(uint64_t value);

  std::array<std::atomic<uint64_t>, kBuckets> m_buckets{};
  std::atomic<uint64_t> m_count{0};
  std::atomic<uint64_t> m_max{0};
};

}  // namespace vtkv
