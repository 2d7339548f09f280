// SPDX-License-Identifier: LGPL-2.1-or-later
// Room for what the store itself writes, promised by the containers that it goes to; what was not used goes back at the
// end.
//
// Not thread-safe.
#pragma once

#include <cstdint>

#include "swimstore/container/container_set.h"

namespace swimstore {

class PromisedRoom {
 public:
  // `late`: who waits for room before the next attempt (SpaceGate) gets no more. `usual`: nothing of the reserve.
  PromisedRoom(ContainerSet& containers, uint64_t bytes, Urgency urgency)
      : m_containers(containers),
        m_left_bytes(bytes),
        m_promised(has_room(containers, bytes, urgency) && containers.promise(bytes, urgency)) {}
  ~PromisedRoom() {
    if (m_promised) {
      m_containers.give_back(m_left_bytes);
    }
  }
  PromisedRoom(const PromisedRoom&) = delete;
  PromisedRoom& operator=(const PromisedRoom&) = delete;

  // A promise grows containers as far as the host lets them, and what it is short of stays with them: so it is asked
  // for when there is enough.
  static bool has_room(ContainerSet& containers, uint64_t bytes, Urgency urgency) {
    const ContainerStatistics statistics = containers.statistics();
    const uint64_t reserve = urgency == Urgency::late ? statistics.reserve_bytes / 2 : 0;
    return statistics.free_bytes + statistics.growable_bytes + reserve >= bytes;
  }

  explicit operator bool() const { return m_promised; }
  uint64_t left_bytes() const { return m_left_bytes; }
  void used(uint64_t bytes) {
    m_left_bytes -= bytes;
    m_containers.give_back(bytes);
  }

 private:
  ContainerSet& m_containers;
  uint64_t m_left_bytes;
  const bool m_promised;
};

}  // namespace swimstore
