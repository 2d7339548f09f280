// SPDX-License-Identifier: LGPL-2.1-or-later
// Counts what others do for a worker that looks around by itself while they are busy, so that they need not wake it,
// and that sleeps when they are not.
//
// Each side writes before it reads the other's: those who are busy count, then look whether it sleeps; the worker says
// that it sleeps, then looks at the count. So one of them sees the other.
//
// Threads: note() from any, the others from the worker's step.
#pragma once

#include <atomic>
#include <cstdint>

namespace swimstore {

class Activity {
 public:
  // True: the worker sleeps, and it is the caller who has to wake it.
  bool note() {
    m_count.fetch_add(1);
    return m_asleep.load() && m_asleep.exchange(false);
  }

  // Was there any since the step before?
  bool look() {
    m_asleep = false;
    const uint64_t before = m_seen;
    m_seen = m_count.load();
    return m_seen != before;
  }
  // True: whoever comes from now on wakes it. False: somebody came since look(), and has not.
  bool fall_asleep() {
    m_asleep = true;
    return m_count.load() == m_seen;
  }

 private:
  std::atomic<uint64_t> m_count{0};
  std::atomic<bool> m_asleep{false};
  uint64_t m_seen = 0;  // the worker's
};

}  // namespace swimstore
