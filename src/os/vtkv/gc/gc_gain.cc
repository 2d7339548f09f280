// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/gc_gain.h"

#include <algorithm>

namespace vtkv {

namespace {

// Emptied before it is judged: so many segments that what one more or less changes is small beside it, and a notable
// part of a large log.
constexpr uint64_t kJudgedSegments = 16;
constexpr uint64_t kJudgedShare = 8;
constexpr uint64_t kGainShare = 16;  // of what was emptied has to be gained
constexpr uint64_t kLossShare = 16;  // of a segment has to die before it is chosen again
// Of the log, for an operation of others, at most. Who writes more in few operations is taken for the collector.
constexpr uint64_t kOperationBytesMost = 64u << 10;
constexpr uint64_t kOthersShare = 4;  // of what was emptied: if others have written more, it is not judged

}  // namespace

// By others, about: nobody knows how much of a record that has both is theirs.
uint64_t GcGain::written_by_others(const Measure& now) const {
  const uint64_t written = now.log_bytes - m_begin->log_bytes;
  const uint64_t moved = now.moved_bytes - m_begin->moved_bytes;
  return std::min(written - std::min(written, moved), (now.others_count - m_begin->others_count) * kOperationBytesMost);
}

void GcGain::judge(const Measure& now, uint64_t segment_bytes, SequenceNumber visible) {
  if (m_begin) {
    if (m_emptied_bytes < std::max(kJudgedSegments * segment_bytes, m_begin->taken_bytes / kJudgedShare)) {
      return;
    }
    const uint64_t by_others = written_by_others(now);
    const uint64_t before = m_begin->taken_bytes + by_others;
    const uint64_t gained = before - std::min(before, now.taken_bytes);
    if (by_others < m_emptied_bytes / kOthersShare && gained < m_emptied_bytes / kGainShare) {
      m_rests_until = visible;
    }
  }
  m_begin = now;
  m_emptied_bytes = 0;
}

void GcGain::see(const std::vector<SegmentValues>& account, SequenceNumber checkpoint) {
  const bool all_stay = m_rests_until && checkpoint >= *m_rests_until;
  std::map<uint64_t, uint64_t> live_bytes;
  for (const SegmentValues& values : account) {
    const auto known = m_live_bytes.find(values.epoch);
    if (all_stay) {
      live_bytes[values.epoch] = values.live_bytes();
    } else if (known != m_live_bytes.end()) {
      live_bytes[values.epoch] = std::max(known->second, values.live_bytes());  // more where it is still being filled
    }
  }
  m_live_bytes = std::move(live_bytes);
  if (all_stay) {
    m_rests_until.reset();
  }
}

bool GcGain::passes_over(const SegmentValues& values, uint64_t segment_bytes) const {
  const auto known = m_live_bytes.find(values.epoch);
  return known != m_live_bytes.end() && values.live_bytes() + segment_bytes / kLossShare > known->second;
}

}  // namespace vtkv
