#include "vtkv/tree/run_merge.h"

#include <algorithm>

namespace vtkv {

EntryMerger::EntryMerger(std::vector<std::unique_ptr<EntryIterator>> sources) : m_sources(std::move(sources)) {}

bool EntryMerger::comes_later(size_t a, size_t b) const {
  const Entry& left = m_sources[a]->entry();
  const Entry& right = m_sources[b]->entry();
  if (const int order = left.key.compare(right.key); order != 0) {
    return order > 0;
  }
  return left.sequence != right.sequence ? left.sequence < right.sequence : a > b;
}

void EntryMerger::push(size_t source) {
  if (!m_sources[source]->valid()) {
    if (m_status.ok()) {
      m_status = m_sources[source]->status();
    }
    return;
  }
  m_heap.push_back(source);
  std::push_heap(m_heap.begin(), m_heap.end(), [this](size_t a, size_t b) { return comes_later(a, b); });
}

void EntryMerger::seek_to_first() {
  m_heap.clear();
  for (size_t i = 0; i < m_sources.size(); ++i) {
    m_sources[i]->seek_to_first();
    push(i);
  }
}

void EntryMerger::next() {
  std::pop_heap(m_heap.begin(), m_heap.end(), [this](size_t a, size_t b) { return comes_later(a, b); });
  const size_t source = m_heap.back();
  m_heap.pop_back();
  m_sources[source]->next();
  push(source);
}

bool OlderRuns::may_hold(std::string_view key) const {
  return std::any_of(m_runs.begin(), m_runs.end(), [&](const auto& run) { return run->may_hold(key); });
}

bool OlderRuns::may_hold_any(std::string_view begin, std::string_view end) const {
  return std::any_of(m_runs.begin(), m_runs.end(), [&](const auto& run) {
    if (!run->entries_reach_into(begin, end)) {
      return false;
    }
    if (m_range_reads_left == 0) {
      return true;
    }
    --m_range_reads_left;
    bool holds = false;
    // What cannot be read may hold anything.
    return !run->holds_any(begin, end, &holds).ok() || holds;
  });
}

Status merge_runs(const std::vector<std::shared_ptr<const Run>>& runs, const Reducer::Older& older,
                  const std::vector<SequenceNumber>& snapshots, const std::atomic<bool>& stop, DropObserver* drops,
                  RunWriter* writer, std::shared_ptr<const Run>* merged) {
  std::vector<RangeRemoval> all_removals;
  std::vector<std::unique_ptr<EntryIterator>> sources;
  for (const auto& run : runs) {
    run->range_removals()->for_each([&](const RangeRemoval& removal) { all_removals.push_back(removal); });
    sources.push_back(run->new_iterator(true));
  }
  const RangeRemovals removals(std::move(all_removals));
  Reducer reducer(&snapshots, &removals, &older, drops);
  EntryMerger merger(std::move(sources));
  for (merger.seek_to_first(); merger.valid(); merger.next()) {
    if (stop.load(std::memory_order_relaxed)) {
      return Status::busy("the merge was stopped");
    }
    if (reducer.keep(merger.entry())) {
      VTKV_RETURN_IF_ERROR(writer->add(merger.entry()));
    }
  }
  VTKV_RETURN_IF_ERROR(merger.status());
  return writer->finish(reducer.reduced_removals(), merged);
}

}  // namespace vtkv
