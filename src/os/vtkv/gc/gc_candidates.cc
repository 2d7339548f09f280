// SPDX-License-Identifier: LGPL-2.1-or-later
// Which segments the collector of the value log empties (value_gc.h), and which it leaves alone for a while.

#include <algorithm>

#include "vtkv/gc/value_gc.h"

namespace vtkv {

namespace {

constexpr double kStart = 0.92;            // of the target: ahead of need, or writers would outrun it
constexpr double kRoundWorthwhile = 0.95;  // of a candidate that may be live, when one is asked for
constexpr double kFullWorthwhile = 0.90;

}  // namespace

bool ValueGc::is_pending_free(uint64_t epoch) const {
  return std::any_of(m_pending_free.begin(), m_pending_free.end(),
                     [&](const PendingFree& pending) { return pending.epoch == epoch; });
}

// The checkpoint comes first: what it seals is in every account from then on, whole. A flush in between would bring
// values, and a later end of a segment, that an account of before does not know.
std::vector<SegmentValues> ValueGc::account(uint64_t* sealed_below) const {
  *sealed_below = m_tree->newest_log_position().epoch;
  return m_tree->value_segments();
}

// Everything in these segments is in the tree: the checkpoint lies in a later one. What could not be read of them
// before need not be read any more.
bool ValueGc::mark_unreferenced() {
  bool any = false;
  uint64_t sealed_below = 0;
  for (const SegmentValues& values : account(&sealed_below)) {
    if (values.entries == 0 && values.epoch < sealed_below && !is_pending_free(values.epoch) &&
        !m_reader.is_reading(values.epoch)) {
      m_pending_free.push_back({values.epoch, 0, false, 0});
      release_from_quarantine(values.epoch);
      std::erase_if(m_chosen, [&](const SegmentValues& chosen) { return chosen.epoch == values.epoch; });
      m_addresses.erase(values.epoch);
      any = true;
    }
  }
  return any;
}

// The log's files against what lives in them. Of what is not in the tree yet, as large a part counts as new as of
// the last flush; the rest lives in place of an older version, which is counted. What is in quarantine counts on
// neither side: others need not be emptied for it.
double ValueGc::fullness(const std::vector<SegmentValues>& segments) const {
  uint64_t listed = 0;
  uint64_t live = 0;
  uint64_t quarantined_bytes = 0;
  for (const SegmentValues& values : segments) {
    const LogSegment* segment = m_pool->find(values.segment_id);
    if (segment && segment->epoch == values.epoch) {
      listed += segment->bytes;
      const bool quarantined = m_quarantine.contains(values.epoch);
      live += quarantined ? 0 : values.live_bytes();
      quarantined_bytes += quarantined ? segment->bytes : 0;
    }
  }
  uint64_t total = m_pool->file_bytes();
  total -= std::min(total, quarantined_bytes);
  const uint64_t used = m_pool->used_bytes();
  const uint64_t unlisted_in_use = used - std::min(used, listed);
  for (const PendingFree& pending : m_pending_free) {
    total -= std::min(total, m_pool->bytes_of_epoch(pending.epoch));
  }
  const double fresh = static_cast<double>(unlisted_in_use) * (1 - m_tree->overwritten_share());
  const double allowed = m_options.space_amplification_target * (static_cast<double>(live) + fresh);
  return allowed > 0 ? static_cast<double>(total) / allowed : 0;
}

std::vector<SegmentValues> ValueGc::choose() {
  uint64_t newest = 0;
  const std::vector<SegmentValues> segments = account(&newest);
  const bool full = m_serving > 0 && m_serving_what == Request::full;
  const bool round = m_serving > 0 && m_serving_what == Request::round;
  m_pressure.store(0, std::memory_order_relaxed);
  const double filled = m_options.space_amplification_target > 0 ? fullness(segments) : 0;
  if (!full && !round && filled <= kStart) {
    return {};
  }
  const uint64_t below = full ? std::min(newest, m_full_below) : newest;
  // At the target, 1 / target of the log lives in the mean. Where better candidates than halfway from there to whole
  // are not to be had, the log is large for another reason, and to move much would free little.
  const double halfway = (1 + 1 / std::max(1.0, m_options.space_amplification_target)) / 2;
  const double worthwhile = full ? kFullWorthwhile : round ? kRoundWorthwhile : halfway;
  std::vector<std::pair<double, SegmentValues>> scored;
  for (const SegmentValues& values : segments) {
    const LogSegment* segment = m_pool->find(values.segment_id);
    if (!segment || segment->epoch != values.epoch || values.epoch >= below || is_pending_free(values.epoch) ||
        m_quarantine.contains(values.epoch)) {
      continue;
    }
    const double used = static_cast<double>(values.live_bytes()) / static_cast<double>(segment->bytes);
    if (used <= worthwhile) {
      scored.push_back({(1 - used) * static_cast<double>(newest - values.epoch) / (1 + used), values});
    }
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SegmentValues> candidates;
  for (const auto& [score, values] : scored) {
    candidates.push_back(values);
  }
  if (!candidates.empty() && !full && !round) {
    m_pressure.store(filled, std::memory_order_relaxed);
  }
  return candidates;
}

GcPlan ValueGc::plan(const std::vector<SegmentValues>& choice) const {
  const bool one = m_serving > 0 && m_serving_what == Request::round;
  if (m_quarantine.contains(kScan)) {  // looking values up meets what cannot be read less often
    return {.way = Way::whole, .candidates = {choice.front()}};
  }
  return plan_gc(m_options, *m_pool, m_tree->statistics().entries, choice, one);
}

bool ValueGc::start_next() {
  const std::vector<SegmentValues> choice = choose();
  if (choice.empty()) {
    return false;
  }
  if (m_chosen.empty()) {
    start(choice);
  } else {
    start_reading(m_chosen.front());
    m_chosen.pop_front();
  }
  return true;
}

// --- what could not be emptied --------------------------------------------------------------------------

// `epoch`: of the candidate that cannot be emptied, or kScan. The others are chosen again.
void ValueGc::give_up(uint64_t epoch, const Status& status) {
  stop_with(status);
  if (!m_stop.load(std::memory_order_relaxed)) {
    m_addresses.erase(epoch);
    m_quarantine.add(epoch, status, m_host->gc_now_us());
    (void)tell();
  }
}

void ValueGc::release_from_quarantine(uint64_t epoch) {
  if (m_quarantine.remove(epoch)) {
    (void)tell();
  }
}

std::chrono::microseconds ValueGc::tell() {
  return m_host->gc_outcome(m_freeing.ok() ? m_quarantine.status() : m_freeing);
}

// What failed once may fail again: in turn with segments that give something back for certain, and behind them in a
// request, which ends: what fails is tried again when it is over. A scan of the tree is one look, and spares many.
bool ValueGc::try_or_start() {
  const uint64_t now_us = m_host->gc_now_us();
  const uint64_t failures = m_serving > 0 ? m_failures_before : UINT64_MAX;
  const std::optional<uint64_t> due = m_quarantine.due(now_us, failures);
  const bool comes_first = due && (*due == kScan || (m_serving == 0 && m_candidates_turn_over));
  if (comes_first) {
    m_candidates_turn_over = false;
    return try_again(due);
  }
  m_candidates_turn_over = true;
  return start_next() || try_again(due);
}

// Whatever the log's size: it was worth it once, and who was told of the failure shall hear when it is over.
bool ValueGc::try_again(std::optional<uint64_t> epoch) {
  if (!epoch) {
    return false;
  }
  if (*epoch == kScan) {
    scan_again();
    return true;
  }
  uint64_t sealed_below = 0;
  for (const SegmentValues& values : account(&sealed_below)) {
    const LogSegment* segment = m_pool->find(values.segment_id);
    if (values.epoch == *epoch && segment && segment->epoch == *epoch) {
      start_reading(values);
      return true;
    }
  }
  release_from_quarantine(*epoch);
  return true;
}

// Only where it failed.
void ValueGc::scan_again() {
  ValueScan scan(nullptr, nullptr, &m_stop);
  scan.start({kScan}, m_scan_failed_at);
  std::map<uint64_t, std::vector<uint64_t>> none;
  const Status status = scan.find_addresses(*m_tree->current(), &none);
  status.ok() ? release_from_quarantine(kScan) : give_up(kScan, status);
}

}  // namespace vtkv
