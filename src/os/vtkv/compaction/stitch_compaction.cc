// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/stitch_compaction.h"

#include <algorithm>

#include "vtkv/span/fill.h"

namespace vtkv {

namespace {
constexpr uint64_t kPaceBytes = 256 << 10;
// Of what is stitched, for each byte of memory that its slice takes.
constexpr uint64_t kStitchedShare = 320;
}  // namespace

StitchCompaction::StitchCompaction(const std::vector<std::shared_ptr<const Run>>& runs, CompactionIterator* iterator,
                                   const StitchPolicy& policy, const CompactionPace& pace, EntrySink* sink,
                                   const KeyRange& range)
    : m_iterator(*iterator), m_policy(policy), m_pace(pace), m_sink(*sink), m_begin(range.begin), m_heap(InTurn{this}) {
  for (const auto& run : runs) {
    m_sources.push_back(std::make_unique<CompactionSource>(run.get(), range.end));
  }
}

bool StitchCompaction::InTurn::operator()(size_t a, size_t b) const {
  return comes_before(compaction->position_of(a), compaction->position_of(b));
}

bool StitchCompaction::limit(std::string_view* key) const {
  bool any = false;
  for (const size_t* next = m_heap.next_begin(); next != m_heap.next_end(); ++next) {
    const std::string_view other = m_sources[*next]->key();
    if (!any || other < *key) {
      *key = other;
    }
    any = true;
  }
  return any;
}

bool StitchCompaction::is_stitchable(const BlockRange& blocks, const CompactionSource& source) const {
  std::string_view limit_key;
  if (limit(&limit_key) && blocks.last_key >= limit_key) {
    return false;
  }
  if (m_policy.must_move && m_sink.copied_bytes() < m_policy.moved_max) {
    const Span& span = source.span();
    if (m_policy.must_move(span.offset + uint64_t{blocks.unit} * kUnitBytes, uint64_t{blocks.units} * kUnitBytes) ||
        m_policy.must_move(span.offset + uint64_t{span.index_unit} * kUnitBytes,
                           uint64_t{span.index_units} * kUnitBytes)) {
      return false;
    }
  }
  return m_iterator.has_passed_before(blocks.first_key) &&
         m_iterator.fate_of(blocks) == CompactionIterator::Fate::kept &&
         !(m_policy.drops_tombstones && m_iterator.is_worth_reading(blocks));
}

// However short, what is stitched costs a slice, with two keys.
uint64_t StitchCompaction::stitched_bytes_min(const CompactionSource& source) const {
  const uint64_t slice_bytes = kSliceMemoryBytes + 2 * source.key().size();
  return m_policy.bytes_min == 0 ? 0 : std::max(m_policy.bytes_min, kStitchedShare * slice_bytes);
}

// Leaves out what a range tombstone hides, and stitches what stands alone.
Status StitchCompaction::pass_over(CompactionSource* source, bool* passed) {
  CompactionSource::Slices slices;
  if (m_iterator.drops_unread()) {
    VTKV_RETURN_IF_ERROR(source->pass(
        [&](const BlockRange& blocks) { return m_iterator.fate_of(blocks) == CompactionIterator::Fate::dropped; },
        &slices));
    if (!slices.empty()) {
      *passed = true;
      return {};
    }
  }
  if (m_policy.bytes_min == kNeverStitch || source->must_open()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(source->pass_together([&](const BlockRange& blocks) { return is_stitchable(blocks, *source); },
                                             stitched_bytes_min(*source), &slices));
  for (const SpanSlice& slice : slices) {
    VTKV_RETURN_IF_ERROR(m_sink.stitch(source->span_of(slice), slice.blocks));
    VTKV_RETURN_IF_ERROR(m_pace(uint64_t{slice.blocks.units} * kUnitBytes));  // its keys may have been read
  }
  if (!slices.empty()) {
    m_iterator.pass(slices.back().blocks.last_key);
    *passed = true;
  }
  return {};
}

Status StitchCompaction::step() {
  CompactionSource* source = m_sources[m_heap.front()].get();
  if (source->at_block()) {
    bool passed = false;
    VTKV_RETURN_IF_ERROR(pass_over(source, &passed));
    if (passed) {
      m_heap.front_moved(source->valid());
      return {};
    }
    VTKV_RETURN_IF_ERROR(source->open());
  }
  const Entry& entry = source->entry();
  m_bytes += entry.key.size() + entry.value.size() + 16;
  if (m_iterator.keep(entry)) {
    VTKV_RETURN_IF_ERROR(m_sink.add(entry));
  }
  VTKV_RETURN_IF_ERROR(source->next());
  m_heap.front_moved(source->valid());
  return {};
}

Status StitchCompaction::run() {
  m_heap.clear();
  for (size_t i = 0; i < m_sources.size(); ++i) {
    VTKV_RETURN_IF_ERROR(m_sources[i]->go_to(m_begin));
    if (m_sources[i]->valid()) {
      m_heap.add(i);
    }
  }
  m_heap.order();
  VTKV_RETURN_IF_ERROR(m_pace(0));
  while (!m_heap.empty()) {
    VTKV_RETURN_IF_ERROR(step());
    if (m_bytes >= kPaceBytes) {
      VTKV_RETURN_IF_ERROR(m_pace(m_bytes));
      m_bytes = 0;
    }
  }
  return m_pace(m_bytes);
}

}  // namespace vtkv
