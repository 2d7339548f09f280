// SPDX-License-Identifier: LGPL-2.1-or-later
// Which segments the collector of the value log empties (value_gc.h), and which it leaves alone for a while.

#include <algorithm>

#include "vtkv/gc/value_gc.h"
#include "vtkv/tree/tree_failure.h"

namespace vtkv {

// Everything in these segments is in the tree: the checkpoint lies in a later one. What could not be read of them
// before need not be read any more.
bool ValueGc::mark_unreferenced() {
  bool any = false;
  LogPosition checkpoint;
  for (const SegmentValues& values : m_choice.account(&checkpoint)) {
    if (values.entries == 0 && values.epoch < checkpoint.epoch && !m_pending_free.contains(values.epoch) &&
        !m_reader.is_reading(values.epoch)) {
      m_pending_free.add(values.epoch, 0);
      release_from_quarantine(values.epoch);
      std::erase_if(m_chosen, [&](const SegmentValues& chosen) { return chosen.epoch == values.epoch; });
      m_addresses.erase(values.epoch);
      any = true;
    }
  }
  return any;
}

// While flushes fail, what is emptied is held as by a snapshot of the beginning.
std::vector<SealedSegment> ValueGc::choose(const LogFiles& files) {
  using Extent = CandidateChoice::Extent;
  const std::vector<BackgroundError> errors = m_db.errors->current();
  const bool flushes_fail =
      std::any_of(errors.begin(), errors.end(), [](const auto& error) { return error.work == &kFlushWork; });
  return m_choice.choose(m_requests.serving(GcRequest::full)    ? Extent::full
                         : m_requests.serving(GcRequest::round) ? Extent::round
                                                                : Extent::due,
                         m_full_below, files, flushes_fail ? 0 : m_db.states->oldest_snapshot());
}

// While nothing is being emptied: all that was relocated is for what is pending-free.
void ValueGc::judge_gain(const LogFiles& files) {
  m_unwritten.forget_logged(m_db.pipeline->logged_sequence());
  const uint64_t pending_bytes = m_pending_free.bytes(files);
  const SequenceNumber visible = m_db.states->visible();
  m_gain.judge({.taken_bytes = files.used - std::min(files.used, pending_bytes) + m_unwritten.bytes(),
                .log_bytes = m_db.pipeline->log_bytes(),
                .moved_bytes = moved_bytes(),
                .others_count = visible - m_moved_values},
               m_db.pool->segment_bytes(), visible);
}

GcPlan ValueGc::plan(const std::vector<SealedSegment>& choice, const LogFiles& files) const {
  const bool one = m_requests.serving(GcRequest::round);
  if (m_quarantine.contains(kScan)) {  // looking values up meets what cannot be read less often
    return {.way = Way::whole, .candidates = {choice.front().values}};
  }
  return plan_gc(m_options, files.used, m_db.tree->statistics().entries, choice, one);
}

bool ValueGc::start_next() {
  const LogFiles files = m_db.pool->files();
  judge_gain(files);
  const std::vector<SealedSegment> choice = choose(files);
  if (choice.empty()) {
    return false;
  }
  if (m_chosen.empty()) {
    start(plan(choice, files));
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
    m_quarantine.add(epoch, status, m_db.env->now_us());
    (void)tell();
  }
}

void ValueGc::release_from_quarantine(uint64_t epoch) {
  if (m_quarantine.remove(epoch)) {
    (void)tell();
  }
}

std::chrono::microseconds ValueGc::tell() {
  m_db.errors->note(kCollectWork, m_freeing.ok() ? m_quarantine.status() : m_freeing);
  stop_with_tree(*m_db.tree, m_db.pipeline, m_db.waiters);
  return m_db.errors->wait(kCollectWork);
}

// What failed once may fail again: in turn with segments that give something back for certain, and behind them in a
// request, which ends: what fails is tried again when it is over. A scan of the tree is one look, and spares many.
bool ValueGc::try_or_start() {
  const uint64_t now_us = m_db.env->now_us();
  const uint64_t failures = m_requests.serving() ? m_failures_before : UINT64_MAX;
  const std::optional<uint64_t> due = m_quarantine.due(now_us, failures);
  const bool comes_first = due && (*due == kScan || (!m_requests.serving() && m_candidates_turn_over));
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
  LogPosition checkpoint;
  for (const SegmentValues& values : m_choice.account(&checkpoint)) {
    const LogSegment* segment = m_db.pool->find(values.segment_id);
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
  const Status status = scan.find_addresses(*m_db.tree->current(), &none);
  status.ok() ? release_from_quarantine(kScan) : give_up(kScan, status);
}

}  // namespace vtkv
