// SPDX-License-Identifier: LGPL-2.1-or-later
// Slows writers down when space runs short, so that the cluster notices before it has run out.
//
// An OSD reports how full it is every few seconds, a fast disk fills its last few percent in less; and a
// transaction that was queued cannot be refused. So when little is left, it is used up no faster than all of it would
// be in swimstore_space_throttle_time: the rest shrinks ever more slowly, and the full ratios take effect in time.
//
// What counts is what stays. An overwrite frees as much as it takes, and a store that is nearly full may live on such
// writes for years. So a few times a second it is looked at what is left. As long as that has not shrunk by more than
// the rate allows, but for one second's worth, nobody waits; when it has, all that is written is slowed to the rate.
//
// Far from full nothing is slowed. One turn is 5 s at most: where that is too little, transaction/space_gate.h stops
// what finds no room.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/HBHandle.h"

#include "swimstore/container/container_set.h"
#include "vtkv/env.h"

namespace swimstore {

class SpaceThrottle {
 public:
  // seconds: the time to use up what is left; 0: no throttle. on_its_way_bytes: as in SpaceLimits.
  // statistics: of the store, of all its cubes.
  SpaceThrottle(vtkv::Env* env, std::function<ContainerStatistics()> statistics, double seconds,
                uint64_t on_its_way_bytes = 0)
      : m_env(env), m_statistics(std::move(statistics)), m_seconds(seconds), m_on_its_way_bytes(on_its_way_bytes) {}

  // How long a writer of so many bytes should wait first; it takes its turn behind those who wait. Cheap.
  std::chrono::microseconds delay_for(uint64_t bytes);
  // Waits that long. handle (nullptr: none): that of the thread, whose timeout is suspended meanwhile. Returns the time
  // waited.
  uint64_t before_write_us(uint64_t bytes, HBHandle* handle);

 private:
  void look(uint64_t now_us);

  vtkv::Env* const m_env;
  const std::function<ContainerStatistics()> m_statistics;
  const double m_seconds;
  const uint64_t m_on_its_way_bytes;
  // Of look(), which is one thread's at a time.
  uint64_t m_looked_us = 0;
  uint64_t m_least_left_bytes = 0;  // with no more than that the store was filled too fast; 0: it is far from full

  std::atomic<uint64_t> m_next_look_us{0};  // kLooking: somebody does
  // What may be written per second; kUnlimited while nobody is slowed.
  std::atomic<uint64_t> m_bytes_per_s{UINT64_MAX};
  std::atomic<uint64_t> m_last_turn_us{0};  // when the last of those who wait may go on
};

// What could still be written, of what the containers could hold in all. What waits for the reuse horizon, or is
// reserved by transactions that are being planned, is still left: when these have freed what they overwrite, nothing
// has changed.
struct SpaceLeft {
  uint64_t left_bytes = 0;
  uint64_t capacity_bytes = 0;
};
SpaceLeft space_left(const ContainerStatistics& statistics);

}  // namespace swimstore
