#include "vtkv/tree/stitch_merge.h"

#include <algorithm>

namespace vtkv {

namespace {
constexpr uint64_t kPaceBytes = 256 << 10;
}  // namespace

StitchMerge::StitchMerge(const std::vector<std::shared_ptr<const Run>>& runs, Reducer* reducer,
                         const StitchPolicy& policy, const MergePace& pace, RunWriter* writer,
                         const KeyRange& range)
    : m_reducer(*reducer), m_policy(policy), m_pace(pace), m_writer(*writer), m_begin(range.begin) {
  for (const auto& run : runs) {
    m_sources.push_back(std::make_unique<MergeSource>(run.get(), range.end));
  }
}

// Of equal key and sequence, those of the newer run first.
bool StitchMerge::comes_later(size_t a, size_t b) const {
  const MergeSource& left = *m_sources[a];
  const MergeSource& right = *m_sources[b];
  if (const int order = left.key().compare(right.key()); order != 0) {
    return order > 0;
  }
  return left.sequence() != right.sequence() ? left.sequence() < right.sequence() : a > b;
}

// The source in front has moved.
void StitchMerge::sift_down() {
  if (!m_sources[m_heap.front()]->valid()) {
    m_heap.front() = m_heap.back();
    m_heap.pop_back();
  }
  for (size_t parent = 0, child = 1; child < m_heap.size(); child = 2 * parent + 1) {
    if (child + 1 < m_heap.size() && comes_later(m_heap[child], m_heap[child + 1])) {
      ++child;
    }
    if (!comes_later(m_heap[parent], m_heap[child])) {
      return;
    }
    std::swap(m_heap[parent], m_heap[child]);
    parent = child;
  }
}

bool StitchMerge::limit(std::string_view* key) const {
  for (size_t i = 1; i < std::min<size_t>(3, m_heap.size()); ++i) {
    const std::string_view other = m_sources[m_heap[i]]->key();
    if (i == 1 || other < *key) {
      *key = other;
    }
  }
  return m_heap.size() > 1;
}

bool StitchMerge::is_stitchable(const BlockRange& blocks, const MergeSource& source) const {
  std::string_view limit_key;
  if (limit(&limit_key) && blocks.last_key >= limit_key) {
    return false;
  }
  if (m_policy.must_move && m_writer.copied_bytes() < m_policy.moved_max) {
    const Span& span = source.span();
    if (m_policy.must_move(span.offset + uint64_t{blocks.unit} * kUnitBytes, uint64_t{blocks.units} * kUnitBytes) ||
        m_policy.must_move(span.offset + uint64_t{span.index_unit} * kUnitBytes,
                           uint64_t{span.index_units} * kUnitBytes)) {
      return false;
    }
  }
  return m_reducer.has_passed_before(blocks.first_key) && m_reducer.fate_of(blocks) == Reducer::Fate::kept &&
         !(m_policy.reduces && m_reducer.is_worth_reducing(blocks));
}

// Leaves out what a range removal hides, and stitches what stands alone.
Status StitchMerge::pass_over(MergeSource* source, bool* passed) {
  MergeSource::Parts parts;
  if (m_reducer.drops_unread()) {
    VTKV_RETURN_IF_ERROR(source->pass(
        [&](const BlockRange& blocks) { return m_reducer.fate_of(blocks) == Reducer::Fate::dropped; }, &parts));
    if (!parts.empty()) {
      *passed = true;
      return {};
    }
  }
  if (m_policy.bytes_min == kNeverStitch || source->must_open()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(source->pass_together(
      [&](const BlockRange& blocks) { return is_stitchable(blocks, *source); }, m_policy.bytes_min, &parts));
  for (const SpanPart& part : parts) {
    VTKV_RETURN_IF_ERROR(m_writer.stitch(source->span_of(part), part.blocks));
  }
  if (!parts.empty()) {
    m_reducer.pass(parts.back().blocks.last_key);
    *passed = true;
  }
  return {};
}

Status StitchMerge::step() {
  MergeSource* source = m_sources[m_heap.front()].get();
  if (source->at_block()) {
    bool passed = false;
    VTKV_RETURN_IF_ERROR(pass_over(source, &passed));
    if (passed) {
      sift_down();
      return {};
    }
    VTKV_RETURN_IF_ERROR(source->open());
  }
  const Entry& entry = source->entry();
  m_bytes += entry.key.size() + entry.value.size() + 16;
  if (m_reducer.keep(entry)) {
    VTKV_RETURN_IF_ERROR(m_writer.add(entry));
  }
  VTKV_RETURN_IF_ERROR(source->next());
  sift_down();
  return {};
}

Status StitchMerge::run() {
  m_heap.clear();
  for (size_t i = 0; i < m_sources.size(); ++i) {
    VTKV_RETURN_IF_ERROR(m_sources[i]->go_to(m_begin));
    if (m_sources[i]->valid()) {
      m_heap.push_back(i);
    }
  }
  std::make_heap(m_heap.begin(), m_heap.end(), [this](size_t a, size_t b) { return comes_later(a, b); });
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
