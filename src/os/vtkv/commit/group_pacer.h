// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides how long the next record waits for more submissions, so that they share its flush.
//
// Whoever waits for a flush tends to submit again as soon as it is over. A record formed at once would hold only
// what came during the flush, and those just woken would miss it: n writers would take turns in two or three groups. So
// a record is not formed while a flush is under way, and afterwards waits until as many submissions are there as took
// part in the last flush or were waiting at its end, but no longer than a quarter of the time that a flush takes. One
// writer alone never waits: he is all that is expected.
//
// Not thread-safe: the commit worker's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace vtkv {

class GroupPacer {
 public:
  void flush_began(uint64_t now_us) {
    m_flushing = true;
    m_began_us = now_us;
  }
  // It made `ended` submissions durable; `waiting` others are there already.
  void flush_ended(size_t ended, size_t waiting, uint64_t now_us) {
    m_flushing = false;
    const uint64_t took_us = now_us - m_began_us;
    // Flushes now and then take many times their usual time: those say nothing of the next.
    m_flush_us = m_flush_us == 0 ? took_us : (7 * m_flush_us + std::min(took_us, 2 * m_flush_us)) / 8;
    m_expected = ended + waiting;
    m_due_us = now_us + m_flush_us / kLingerShare;
  }
  bool flushing() const { return m_flushing; }
  // How long a record of `waiting` submissions is held back now; 0: form it.
  std::chrono::microseconds hold(size_t waiting, uint64_t now_us) const {
    const bool more = waiting < m_expected && now_us < m_due_us;
    return std::chrono::microseconds(more ? m_due_us - now_us : 0);
  }
  size_t expected() const { return m_expected; }

 private:
  static constexpr uint64_t kLingerShare = 4;

  bool m_flushing = false;
  uint64_t m_began_us = 0;
  uint64_t m_flush_us = 0;  // smoothed
  uint64_t m_due_us = 0;
  size_t m_expected = 0;
};

}  // namespace vtkv
