// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/segment_quarantine.h"

#include <algorithm>

namespace vtkv {

void SegmentQuarantine::add(uint64_t epoch, const Status& status, uint64_t now_us) {
  Held& held = m_held[epoch];
  held.status = status;
  held.pause = held.pause.count() == 0 ? kFirstPause : std::min(2 * held.pause, kPauseMost);
  held.due_us = now_us + static_cast<uint64_t>(held.pause.count());
  held.order = ++m_failures;
}

bool SegmentQuarantine::remove(uint64_t epoch) { return m_held.erase(epoch) > 0; }

std::optional<uint64_t> SegmentQuarantine::due(uint64_t now_us, uint64_t failures) const {
  const std::pair<const uint64_t, Held>* first = nullptr;
  for (const auto& one : m_held) {
    const Held& held = one.second;
    if (held.due_us <= now_us && held.order <= failures && (!first || held.due_us < first->second.due_us)) {
      first = &one;
    }
  }
  return first ? std::optional(first->first) : std::nullopt;
}

std::optional<std::chrono::microseconds> SegmentQuarantine::wait(uint64_t now_us) const {
  std::optional<uint64_t> least;
  for (const auto& [epoch, held] : m_held) {
    const uint64_t left = held.due_us - std::min(held.due_us, now_us);
    least = std::min(left, least.value_or(left));
  }
  return least ? std::optional(std::chrono::microseconds(*least)) : std::nullopt;
}

void SegmentQuarantine::hurry(uint64_t now_us) {
  for (auto& [epoch, held] : m_held) {
    held.due_us = std::min(held.due_us, now_us);
  }
}

const Status& SegmentQuarantine::status() const {
  static const Status kNothing;
  const auto newest = std::max_element(m_held.begin(), m_held.end(),
                                       [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  return newest == m_held.end() ? kNothing : newest->second.status;
}

}  // namespace vtkv
