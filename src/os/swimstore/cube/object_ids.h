// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers that no two objects of a store share, nor writes to omaps in parts (format/omap_row.h), whatever cubes they
// lie in: taken in order, never given again once the transaction that took one is durable. So the greater of two was
// taken later.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace swimstore {

class ObjectIds {
 public:
  uint64_t take() { return m_next.fetch_add(1, std::memory_order_relaxed); }
  // All below it are taken.
  void begin_at(uint64_t next) {
    uint64_t now = m_next.load(std::memory_order_relaxed);
    while (now < next && !m_next.compare_exchange_weak(now, next, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<uint64_t> m_next{1};
};

}  // namespace swimstore
