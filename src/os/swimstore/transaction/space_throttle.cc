// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/space_throttle.h"

#include <algorithm>
#include <thread>

#include "swimstore/ops/suspended_timeout.h"

namespace swimstore {

namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;
constexpr uint64_t kLooking = UINT64_MAX;
constexpr uint64_t kLookInterval_us = 50 * 1000;
// Below it writers are slowed: before the default full ratio, 95 %.
constexpr double kLeftRatioMin = 0.06;
// Deletes and other small updates pass.
constexpr uint64_t kBytesMin = 4096;
constexpr uint64_t kDelayMax_us = 5 * 1000 * 1000;  // well below osd_op_thread_timeout
// The last of the host's space is too little for a container to grow by.
constexpr uint64_t kTooLittleToGrow = 64u << 20;

}  // namespace

SpaceLeft space_left(const ContainerStatistics& statistics) {
  SpaceLeft space;
  space.left_bytes = statistics.growable_bytes - std::min(statistics.growable_bytes, kTooLittleToGrow);
  space.left_bytes += statistics.file_bytes - std::min(statistics.file_bytes, statistics.owned_bytes);
  space.left_bytes -= std::min(space.left_bytes, statistics.kept_bytes);
  space.capacity_bytes = statistics.owned_bytes + statistics.free_bytes + statistics.growable_bytes;
  return space;
}

void SpaceThrottle::look(uint64_t now_us) {
  const SpaceLeft space = space_left(m_statistics());
  const uint64_t on_its_way = std::min(m_on_its_way_bytes, space.capacity_bytes / 16);  // as in space_report()
  const bool is_short = space.left_bytes < kLeftRatioMin * space.capacity_bytes + on_its_way;
  if (!is_short) {
    m_least_left_bytes = 0;
    m_bytes_per_s = kUnlimited;
    return;
  }
  const auto bytes_per_s = static_cast<uint64_t>(space.left_bytes / m_seconds);
  const auto used_up = static_cast<uint64_t>(1e-6 * (now_us - m_looked_us) * bytes_per_s);
  m_looked_us = now_us;
  m_least_left_bytes = std::max(m_least_left_bytes - std::min(m_least_left_bytes, used_up),
                                space.left_bytes - std::min(space.left_bytes, bytes_per_s));
  m_bytes_per_s = space.left_bytes <= m_least_left_bytes ? bytes_per_s : kUnlimited;
}

std::chrono::microseconds SpaceThrottle::delay_for(uint64_t bytes) {
  if (m_seconds <= 0 || bytes < kBytesMin) {
    return {};
  }
  const uint64_t now_us = m_env->now_us();
  uint64_t next_us = m_next_look_us;
  if (now_us >= next_us && m_next_look_us.compare_exchange_strong(next_us, kLooking)) {
    look(now_us);
    m_next_look_us = now_us + kLookInterval_us;
  }
  const uint64_t bytes_per_s = m_bytes_per_s;
  if (bytes_per_s == kUnlimited) {
    return {};
  }
  // One after the other, however many write at once.
  const double share_us = 1e6 * bytes / std::max<uint64_t>(bytes_per_s, 1);
  const uint64_t wait_us = static_cast<uint64_t>(std::min<double>(share_us, kDelayMax_us));
  uint64_t last_us = m_last_turn_us;
  uint64_t turn_us = 0;
  do {
    turn_us = std::min(std::max(last_us, now_us) + wait_us, now_us + kDelayMax_us);
  } while (!m_last_turn_us.compare_exchange_weak(last_us, turn_us));
  return std::chrono::microseconds(turn_us - now_us);
}

uint64_t SpaceThrottle::before_write_us(uint64_t bytes, HBHandle* handle) {
  const auto delay = delay_for(bytes);
  if (delay.count() > 0) {
    const SuspendedTimeout suspended(handle);
    std::this_thread::sleep_for(delay);  // tidy: allow a wait of the caller's thread, not of a worker
  }
  return static_cast<uint64_t>(delay.count());
}

}  // namespace swimstore
