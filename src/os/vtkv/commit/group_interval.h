// SPDX-License-Identifier: LGPL-2.1-or-later
// Keeps commit groups apart by a least time: how writers are slowed down when flushes, compactions or the collector are
// behind.
//
// Not thread-safe: the commit worker's. Never waits: it says how long to.
#pragma once

#include <chrono>
#include <cstdint>

namespace vtkv {

class GroupInterval {
 public:
  // How long the next group has to wait so that it comes `least` after the one before; 0: form it.
  std::chrono::microseconds hold(std::chrono::microseconds least, uint64_t now_us) {
    const uint64_t due_us = m_last_group_us + static_cast<uint64_t>(least.count());
    if (now_us >= due_us) {
      return std::chrono::microseconds(0);
    }
    m_held_since_us = m_held_since_us == 0 ? now_us : m_held_since_us;
    return std::chrono::microseconds(due_us - now_us);
  }
  // A group was formed. False: it was not held back.
  bool formed(uint64_t now_us, uint64_t* held_us) {
    m_last_group_us = now_us;
    const bool held = m_held_since_us > 0;
    *held_us = held ? now_us - m_held_since_us : 0;
    m_held_since_us = 0;
    return held;
  }

 private:
  uint64_t m_last_group_us = 0;
  uint64_t m_held_since_us = 0;  // the next group is held back; 0: it is not
};

}  // namespace vtkv
