// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/candidate_choice.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr double kStart = 0.92;            // of the target: ahead of need, or writers would outrun it
constexpr double kRoundWorthwhile = 0.95;  // of a candidate that may be live, when one is asked for
constexpr double kFullWorthwhile = 0.90;
constexpr uint64_t kHeldShare = 4;  // of what lives: emptied and kept by snapshots and readers, at most

}  // namespace

std::vector<SealedSegment> rank_candidates(const std::vector<SealedSegment>& segments, uint64_t newest,
                                           double worthwhile) {
  std::vector<std::pair<double, SealedSegment>> scored;
  for (const SealedSegment& segment : segments) {
    const SegmentValues& values = segment.values;
    const double used = static_cast<double>(values.live_bytes()) / static_cast<double>(segment.bytes);
    if (used <= worthwhile) {
      scored.push_back({(1 - used) * static_cast<double>(newest - values.epoch) / (1 + used), segment});
    }
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SealedSegment> candidates;
  for (const auto& [score, segment] : scored) {
    candidates.push_back(segment);
  }
  return candidates;
}

// The checkpoint comes first: what it seals is in every account from then on, whole. A flush in between would bring
// values, and a later end of a segment, that an account of before does not know.
std::vector<SegmentValues> CandidateChoice::account(LogPosition* checkpoint) const {
  *checkpoint = m_tree->newest_log_position();
  return m_tree->value_segments();
}

// What is in quarantine does not count.
uint64_t CandidateChoice::live_bytes(const std::vector<SegmentValues>& segments, const LogFiles& files) const {
  uint64_t live = 0;
  for (const SegmentValues& values : segments) {
    live += files.of_epoch(values.epoch) > 0 && !m_quarantine->contains(values.epoch) ? values.live_bytes() : 0;
  }
  return live;
}

// The log's files against what lives in them. Of what is not in the tree yet, as large a part counts as new as of
// the last flush; the rest lives in place of an older version, which is counted. What is in quarantine counts on
// neither side: others need not be emptied for it.
double CandidateChoice::fullness(const std::vector<SegmentValues>& segments, const LogFiles& files) const {
  uint64_t listed = 0;
  uint64_t quarantined_bytes = 0;
  for (const SegmentValues& values : segments) {
    const uint64_t bytes = files.of_epoch(values.epoch);
    listed += bytes;
    quarantined_bytes += m_quarantine->contains(values.epoch) ? bytes : 0;
  }
  const uint64_t unlisted_in_use = files.used - std::min(files.used, listed);
  const uint64_t total = files.all - std::min(files.all, quarantined_bytes + m_pending_free->bytes(files));
  const double fresh = static_cast<double>(unlisted_in_use) * (1 - m_tree->overwritten_share());
  const double allowed =
      m_options.space_amplification_target * (static_cast<double>(live_bytes(segments, files)) + fresh);
  if (allowed <= 0) {  // nothing lives: what is there is garbage, and no writer is behind it
    return listed > 0 ? 1 : 0;
  }
  return static_cast<double>(total) / allowed;
}

std::vector<SealedSegment> CandidateChoice::choose(Extent extent, uint64_t full_below, const LogFiles& files,
                                                   SequenceNumber oldest_snapshot) {
  LogPosition checkpoint;
  const std::vector<SegmentValues> segments = account(&checkpoint);
  const bool due = extent == Extent::due;
  m_pressure.store(0, std::memory_order_relaxed);
  m_gain->see(segments, checkpoint.sequence);
  if (due && (m_gain->rests() ||
              m_pending_free->held_bytes(oldest_snapshot, files) * kHeldShare > live_bytes(segments, files))) {
    return {};
  }
  const double filled = m_options.space_amplification_target > 0 ? fullness(segments, files) : 0;
  if (due && filled <= kStart) {
    return {};
  }
  const uint64_t newest = checkpoint.epoch;
  const uint64_t below = extent == Extent::full ? std::min(newest, full_below) : newest;
  // At the target, 1 / target of the log lives in the mean. Where better candidates than halfway from there to whole
  // are not to be had, the log is large for another reason, and to move much would free little.
  const double halfway = (1 + 1 / std::max(1.0, m_options.space_amplification_target)) / 2;
  const double worthwhile = extent == Extent::full    ? kFullWorthwhile
                            : extent == Extent::round ? kRoundWorthwhile
                                                      : halfway;
  std::vector<SealedSegment> sealed;
  for (const SegmentValues& values : segments) {
    const uint64_t bytes = files.of_epoch(values.epoch);
    if (bytes > 0 && values.epoch < below && !m_pending_free->contains(values.epoch) &&
        !m_quarantine->contains(values.epoch) && !(due && m_gain->passes_over(values, bytes))) {
      sealed.push_back({values, bytes});
    }
  }
  std::vector<SealedSegment> candidates = rank_candidates(sealed, newest, worthwhile);
  if (!candidates.empty() && due) {
    m_pressure.store(filled, std::memory_order_relaxed);
  }
  return candidates;
}

}  // namespace vtkv
