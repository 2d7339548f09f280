// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes the filter of one run from the hashes of its entries' keys, in any order and in bounded memory.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "vtkv/table/quotient_filter.h"

namespace vtkv {

class FilterBuilder {
 public:
  // Fingerprints of `bits` bits (QuotientFilter::fingerprint_bits); 0: no filter.
  // When `go_on` says no, what comes is not looked at any more.
  explicit FilterBuilder(int bits, QuotientFilter::GoOn go_on = {}) : m_bits(bits), m_go_on(std::move(go_on)) {}

  void add(uint64_t key_hash) {
    if (m_bits > 0) {
      m_key_hashes.push_back(key_hash);
      if (m_key_hashes.size() == kCollectedMax) {
        take_collected();
      }
    }
  }
  // Inactive without entries, and when the fingerprints are too short for any table of them.
  QuotientFilter finish();

 private:
  static constexpr size_t kCollectedMax = 8 << 20;  // 64 MiB
  void take_collected();

  int m_bits;  // 0: no filter, or none any more
  QuotientFilter::GoOn m_go_on;
  bool m_any = false;
  QuotientFilter m_filter;  // of all but what is collected
  std::vector<uint64_t> m_key_hashes;
};

}  // namespace vtkv
