// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vtkv {

size_t Histogram::bucket_of(uint64_t value) {
  if (value < (1U << kSubBits)) {
    return value;
  }
  const unsigned exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
  const unsigned shift = exponent - kSubBits;
  return (static_cast<size_t>(shift) << kSubBits) + static_cast<size_t>(value >> shift);
}

uint64_t Histogram::upper_bound_of(size_t bucket) {
  if (bucket < (1U << kSubBits)) {
    return bucket;
  }
  const size_t shift = (bucket >> kSubBits) - 1;
  const uint64_t leading = (bucket & ((1U << kSubBits) - 1)) | (1U << kSubBits);
  return (leading << shift) + ((uint64_t{1} << shift) - 1);
}

void Histogram::raise_max(uint64_t value) {
  uint64_t seen = m_max.load(std::memory_order_relaxed);
  while (seen < value && !m_max.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void Histogram::add(uint64_t value) {
  m_buckets[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  m_count.fetch_add(1, std::memory_order_relaxed);
  raise_max(value);
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) {
    m_buckets[i].fetch_add(other.m_buckets[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  m_count.fetch_add(other.count(), std::memory_order_relaxed);
  raise_max(other.max());
}

uint64_t Histogram::percentile(double fraction) const {
  const uint64_t values = count();
  if (values == 0) {
    return 0;
  }
  const double clamped = std::clamp(fraction, 0.0, 1.0);
  const auto rank = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(clamped * static_cast<double>(values))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += m_buckets[i].load(std::memory_order_relaxed);
    if (seen >= rank) {
      return std::min(upper_bound_of(i), max());
    }
  }
  return max();
}

}  // namespace vtkv
