// SPDX-License-Identifier: LGPL-2.1-or-later
// How long work in the background is told, between two steps of it, to go on: so that it can be stopped soon, and lets
// shorter work go first.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "vtkv/status.h"

namespace vtkv {

// Called now and then with the bytes read and written since the last call; an error ends the work.
using CompactionPace = std::function<Status(uint64_t bytes)>;

// For parts of it that can only go on or end: remembers why they had to. Not thread-safe.
class Paced {
 public:
  explicit Paced(CompactionPace pace) : m_pace(std::move(pace)) {}  // empty: it always goes on

  // After so many bytes more. False: it has to end; from then on always.
  bool go_on(uint64_t bytes = 0) {
    if (m_status.ok() && m_pace) {
      m_status = m_pace(bytes);
    }
    return m_status.ok();
  }
  const Status& status() const { return m_status; }

 private:
  const CompactionPace m_pace;
  Status m_status;
};

}  // namespace vtkv
