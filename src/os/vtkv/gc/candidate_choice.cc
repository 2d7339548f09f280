// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/candidate_choice.h"

#include <algorithm>

namespace vtkv {

namespace {

constexpr double kStart = 0.92;            // of the target: ahead of need, or writers would outrun it
constexpr double kRoundWorthwhile = 0.95;  // of a candidate that may be live, when one is asked for
constexpr double kFullWorthwhile = 0.90;

}  // namespace

std::vector<SegmentValues> rank_candidates(const std::vector<SealedSegment>& segments, uint64_t newest,
                                           double worthwhile) {
  std::vector<std::pair<double, SegmentValues>> scored;
  for (const SealedSegment& segment : segments) {
    const SegmentValues& values = segment.values;
    const double used = static_cast<double>(values.live_bytes()) / static_cast<double>(segment.bytes);
    if (used <= worthwhile) {
      scored.push_back({(1 - used) * static_cast<double>(newest - values.epoch) / (1 + used), values});
    }
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SegmentValues> candidates;
  for (const auto& [score, values] : scored) {
    candidates.push_back(values);
  }
  return candidates;
}

// The checkpoint comes first: what it seals is in every account from then on, whole. A flush in between would bring
// values, and a later end of a segment, that an account of before does not know.
std::vector<SegmentValues> CandidateChoice::account(uint64_t* sealed_below) const {
  *sealed_below = m_tree->newest_log_position().epoch;
  return m_tree->value_segments();
}

// The log's files against what lives in them. Of what is not in the tree yet, as large a part counts as new as of
// the last flush; the rest lives in place of an older version, which is counted. What is in quarantine counts on
// neither side: others need not be emptied for it.
double CandidateChoice::fullness(const std::vector<SegmentValues>& segments) const {
  uint64_t listed = 0;
  uint64_t live = 0;
  uint64_t quarantined_bytes = 0;
  for (const SegmentValues& values : segments) {
    const LogSegment* segment = m_pool->find(values.segment_id);
    if (segment && segment->epoch == values.epoch) {
      listed += segment->bytes;
      const bool quarantined = m_quarantine->contains(values.epoch);
      live += quarantined ? 0 : values.live_bytes();
      quarantined_bytes += quarantined ? segment->bytes : 0;
    }
  }
  uint64_t total = m_pool->file_bytes();
  total -= std::min(total, quarantined_bytes);
  const uint64_t used = m_pool->used_bytes();
  const uint64_t unlisted_in_use = used - std::min(used, listed);
  total -= std::min(total, m_pending_free->bytes([this](uint64_t epoch) { return m_pool->bytes_of_epoch(epoch); }));
  const double fresh = static_cast<double>(unlisted_in_use) * (1 - m_tree->overwritten_share());
  const double allowed = m_options.space_amplification_target * (static_cast<double>(live) + fresh);
  return allowed > 0 ? static_cast<double>(total) / allowed : 0;
}

std::vector<SegmentValues> CandidateChoice::choose(Extent extent, uint64_t full_below) {
  uint64_t newest = 0;
  const std::vector<SegmentValues> segments = account(&newest);
  m_pressure.store(0, std::memory_order_relaxed);
  const double filled = m_options.space_amplification_target > 0 ? fullness(segments) : 0;
  if (extent == Extent::due && filled <= kStart) {
    return {};
  }
  const uint64_t below = extent == Extent::full ? std::min(newest, full_below) : newest;
  // At the target, 1 / target of the log lives in the mean. Where better candidates than halfway from there to whole
  // are not to be had, the log is large for another reason, and to move much would free little.
  const double halfway = (1 + 1 / std::max(1.0, m_options.space_amplification_target)) / 2;
  const double worthwhile = extent == Extent::full    ? kFullWorthwhile
                            : extent == Extent::round ? kRoundWorthwhile
                                                      : halfway;
  std::vector<SealedSegment> sealed;
  for (const SegmentValues& values : segments) {
    const LogSegment* segment = m_pool->find(values.segment_id);
    if (segment && segment->epoch == values.epoch && values.epoch < below && !m_pending_free->contains(values.epoch) &&
        !m_quarantine->contains(values.epoch)) {
      sealed.push_back({values, segment->bytes});
    }
  }
  std::vector<SegmentValues> candidates = rank_candidates(sealed, newest, worthwhile);
  if (!candidates.empty() && extent == Extent::due) {
    m_pressure.store(filled, std::memory_order_relaxed);
  }
  return candidates;
}

}  // namespace vtkv
