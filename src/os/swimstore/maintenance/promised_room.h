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
  // `late`: who waits for room before the next attempt (SpaceGate) gets no more. `usual`: nothing of the reserve. Asks
  // nobody for space, as promise_much() does, where there is too little. `metadata_bytes`: as has_room()'s.
  PromisedRoom(ContainerSet& containers, uint64_t bytes, Urgency urgency, uint64_t metadata_bytes = 0)
      : m_containers(containers),
        m_left_bytes(bytes),
        m_promised(containers.has_room(bytes, urgency, metadata_bytes) && containers.promise(bytes, urgency)) {}
  ~PromisedRoom() {
    if (m_promised) {
      m_containers.give_back(m_left_bytes);
    }
  }
  PromisedRoom(const PromisedRoom&) = delete;
  PromisedRoom& operator=(const PromisedRoom&) = delete;

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
