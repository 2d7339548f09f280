#include "vtkv/mem/range_removals.h"

#include <algorithm>
#include <mutex>

namespace vtkv {

bool RangeRemovals::Fragment::covers(SequenceNumber at_most, SequenceNumber newer_than) const {
  return newest(at_most) > newer_than;
}

SequenceNumber RangeRemovals::Fragment::newest(SequenceNumber at_most) const {
  const auto found = std::lower_bound(sequences.begin(), sequences.end(), at_most, std::greater<>());
  return found == sequences.end() ? 0 : *found;
}

RangeRemovals::Fragments::const_iterator RangeRemovals::fragment_of(std::string_view key) const {
  auto next = m_fragments.upper_bound(key);
  if (next == m_fragments.begin()) {
    return m_fragments.end();
  }
  --next;
  return key < next->second.end ? next : m_fragments.end();
}

RangeRemovals::Fragments::iterator RangeRemovals::insert(std::string_view begin, std::string_view end,
                                                         std::vector<SequenceNumber> sequences) {
  constexpr size_t kNodeBytes = sizeof(Fragments::value_type) + 4 * sizeof(void*);
  m_memory_bytes.fetch_add(kNodeBytes + begin.size() + end.size() + sequences.size() * sizeof(SequenceNumber),
                           std::memory_order_relaxed);
  const auto inserted = m_fragments.emplace(begin, Fragment{std::string(end), std::move(sequences)}).first;
  m_fragment_count.store(m_fragments.size(), std::memory_order_release);
  return inserted;
}

void RangeRemovals::split_at(std::string_view key) {
  const auto found = fragment_of(key);
  if (found == m_fragments.end() || found->first == key) {
    return;
  }
  const auto left = m_fragments.find(found->first);
  insert(key, left->second.end, left->second.sequences);
  left->second.end.assign(key);
}

void RangeRemovals::add(SequenceNumber sequence, std::string_view begin, std::string_view end) {
  if (begin >= end) {
    return;
  }
  std::unique_lock lock(m_lock);
  split_at(begin);
  split_at(end);
  std::string position(begin);
  auto fragment = m_fragments.lower_bound(position);
  while (position < end) {
    if (fragment == m_fragments.end() || position < fragment->first) {
      // A gap up to the next fragment or the end of the new range.
      const bool to_next = fragment != m_fragments.end() && fragment->first < end;
      const std::string gap_end(to_next ? std::string_view(fragment->first) : end);
      insert(position, gap_end, {sequence});
      position = gap_end;
      continue;
    }
    auto& sequences = fragment->second.sequences;
    const auto place = std::lower_bound(sequences.begin(), sequences.end(), sequence, std::greater<>());
    if (place == sequences.end() || *place != sequence) {
      sequences.insert(place, sequence);
      m_memory_bytes.fetch_add(sizeof(sequence), std::memory_order_relaxed);
    }
    position = fragment->second.end;
    ++fragment;
  }
}

SequenceNumber RangeRemovals::covering(std::string_view key, SequenceNumber at_most) const {
  if (empty()) {
    return 0;
  }
  std::shared_lock lock(m_lock);
  const auto fragment = fragment_of(key);
  return fragment == m_fragments.end() ? 0 : fragment->second.newest(at_most);
}

std::string RangeRemovals::covered_until(std::string_view key, SequenceNumber at_most,
                                         SequenceNumber newer_than) const {
  if (empty()) {
    return {};
  }
  std::shared_lock lock(m_lock);
  auto fragment = fragment_of(key);
  std::string until;
  while (fragment != m_fragments.end() && fragment->second.covers(at_most, newer_than) &&
         (until.empty() || fragment->first == until)) {
    until = fragment->second.end;
    ++fragment;
  }
  return until;
}

std::optional<std::string> RangeRemovals::covered_from(std::string_view key, SequenceNumber at_most,
                                                       SequenceNumber newer_than) const {
  if (empty()) {
    return std::nullopt;
  }
  std::shared_lock lock(m_lock);
  auto fragment = fragment_of(key);
  if (fragment == m_fragments.end() || !fragment->second.covers(at_most, newer_than)) {
    return std::nullopt;
  }
  while (fragment != m_fragments.begin()) {
    const auto before = std::prev(fragment);
    if (before->second.end != fragment->first || !before->second.covers(at_most, newer_than)) {
      break;
    }
    fragment = before;
  }
  return fragment->first;
}

bool RangeRemovals::overlaps(std::string_view begin, std::string_view end) const {
  if (empty()) {
    return false;
  }
  std::shared_lock lock(m_lock);
  if (fragment_of(begin) != m_fragments.end()) {
    return true;
  }
  const auto next = m_fragments.lower_bound(begin);
  return next != m_fragments.end() && (end.empty() || next->first < end);
}

void RangeRemovals::for_each(
    const std::function<void(std::string_view begin, std::string_view end,
                             const std::vector<SequenceNumber>& sequences)>& visit) const {
  std::shared_lock lock(m_lock);
  for (const auto& [begin, fragment] : m_fragments) {
    visit(begin, fragment.end, fragment.sequences);
  }
}

}  // namespace vtkv
