// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_source.h"

#include <algorithm>

#include "vtkv/span/fill.h"
#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

Status corruption(const Run& run, std::string_view what) {
  return Status::corruption("run " + std::to_string(run.descriptor().run_id) + " of " + run.reader().file().path() +
                            ": " + std::string(what));
}

// A reader goes on over a small gap, such as a span's index, without a seek.
constexpr uint64_t kGapBytesMax = kIndexBytesMost;

}  // namespace

Status CompactionSource::go_to(std::string_view begin) {
  const auto& slices = m_descriptor.slices;
  m_slice = std::partition_point(slices.begin(), slices.end(),
                                 [&](const SpanSlice& slice) { return slice.blocks.last_key < begin; }) -
            slices.begin();
  while (valid() && key() < begin) {
    if (!at_block()) {
      VTKV_RETURN_IF_ERROR(next());
    } else if (!m_in_slice) {
      VTKV_RETURN_IF_ERROR(enter_slice());
    } else if (m_next.last_key < begin) {
      VTKV_RETURN_IF_ERROR(leave_block());
    } else {
      VTKV_RETURN_IF_ERROR(open());
    }
  }
  return {};
}

void CompactionSource::leave_slice() {
  ++m_slice;
  m_in_slice = false;
}

Status CompactionSource::read_line() {
  if (!m_index.status().ok()) {
    return corruption(m_run, m_index.status().message());
  }
  const uint32_t next_unit = m_in_slice ? m_next.end_unit() : slice().blocks.unit;
  if (m_index.valid() && m_next.decode_line(m_index.entry()) && m_next.unit == next_unit &&
      m_next.end_unit() <= slice().blocks.end_unit()) {
    m_in_slice = true;
    return {};
  }
  return corruption(m_run, "a span's index contradicts the descriptor");
}

Status CompactionSource::enter_slice() {
  const Span& span = m_descriptor.spans[slice().span];
  if (m_index_span != span.id) {
    m_index_span = 0;
    VTKV_RETURN_IF_ERROR(
        m_run.reader().read_uncached(span, span.index_unit, span.index_units, BlockKind::index, &m_index_block));
    m_index_span = span.id;
  }
  m_index.reset(m_index_block);
  m_index.seek(slice().blocks.first_key, slice().blocks.first_sequence);
  return read_line();
}

Status CompactionSource::leave_block() {
  if (m_next.end_unit() == slice().blocks.end_unit()) {
    leave_slice();
    return {};
  }
  m_index.next();
  return read_line();
}

Status CompactionSource::open() {
  if (!m_in_slice) {
    VTKV_RETURN_IF_ERROR(enter_slice());
  }
  std::shared_ptr<const Block> block;
  VTKV_RETURN_IF_ERROR(
      m_ahead.read(m_descriptor.spans[slice().span], m_next.unit, m_next.units, slice().blocks.end_unit(), &block));
  m_block.reset(std::move(block));
  m_block.seek_to_first();
  if (!m_block.valid()) {
    return corruption(m_run, m_block.status().ok() ? "a block is empty" : m_block.status().message());
  }
  if (m_block.entry().key != m_next.first_key || m_block.entry().sequence != m_next.first_sequence) {
    return corruption(m_run, "a block does not begin with the key that its span's index says");
  }
  return {};
}

Status CompactionSource::next() {
  m_block.next();
  if (m_block.valid()) {
    return {};
  }
  if (!m_block.status().ok()) {
    return corruption(m_run, m_block.status().message());
  }
  m_block.reset(nullptr);
  return leave_block();
}

bool CompactionSource::is_contiguous(const Slices& passed) const {
  if (passed.empty()) {
    return true;
  }
  const SpanSlice& last = passed.back();
  const uint64_t end = span_of(last).offset + uint64_t{last.blocks.end_unit()} * kUnitBytes;
  return offset() >= end && offset() - end <= kGapBytesMax;
}

// Does what comes behind `blocks`, which begin here, begin with another key than they end with?
Status CompactionSource::ends_before_another_key(const BlockRange& blocks, bool whole_slice, bool* another) {
  if (whole_slice || blocks.end_unit() == slice().blocks.end_unit()) {
    *another = m_slice + 1 == m_descriptor.slices.size() ||
               m_descriptor.slices[m_slice + 1].blocks.first_key != blocks.last_key;
    return {};
  }
  m_index.next();
  if (!m_index.valid()) {
    return corruption(m_run, "a span's index contradicts the descriptor");
  }
  *another = m_index.entry().key != blocks.last_key;
  m_index.previous();
  return {};
}

Status CompactionSource::pass_blocks(const Wanted& wanted, bool together, Slices* passed) {
  while (valid() && (!together || is_contiguous(*passed))) {
    bool good = true;
    if (!m_in_slice && ends_within(slice().blocks) && wanted(slice().blocks)) {
      if (together) {
        VTKV_RETURN_IF_ERROR(ends_before_another_key(slice().blocks, true, &good));
      }
      if (good) {
        append_slice(slice().span, slice().blocks, passed);
        leave_slice();
        continue;
      }
    }
    if (!m_in_slice) {
      VTKV_RETURN_IF_ERROR(enter_slice());
    }
    good = ends_within(m_next) && wanted(m_next);
    if (good && together) {
      VTKV_RETURN_IF_ERROR(ends_before_another_key(m_next, false, &good));
    }
    if (!good) {
      return {};
    }
    append_slice(slice().span, m_next, passed);
    VTKV_RETURN_IF_ERROR(leave_block());
  }
  return {};
}

Status CompactionSource::pass(const Wanted& wanted, Slices* passed) {
  VTKV_ASSERT(at_block());
  return pass_blocks(wanted, false, passed);
}

Status CompactionSource::pass_together(const Wanted& wanted, uint64_t bytes_min, Slices* passed) {
  VTKV_ASSERT(at_block());
  const size_t first_slice = m_slice;
  const bool was_in_slice = m_in_slice;
  const std::shared_ptr<const Block> index_block = m_index_block;
  const uint64_t index_span = m_index_span;
  const BlockRange first_block = m_next;
  VTKV_RETURN_IF_ERROR(pass_blocks(wanted, true, passed));
  uint64_t bytes = 0;
  for (const SpanSlice& slice : *passed) {
    bytes += uint64_t{slice.blocks.units} * kUnitBytes;
  }
  if (bytes > 0 && bytes >= bytes_min) {
    return {};
  }
  m_open_slice = m_slice;
  m_open_unit = unit();
  passed->clear();
  m_slice = first_slice;
  m_in_slice = was_in_slice;
  m_next = first_block;
  if (was_in_slice) {
    m_index_block = index_block;
    m_index_span = index_span;
    m_index.reset(index_block);
    m_index.seek(m_next.first_key, m_next.first_sequence);
  }
  return {};
}

}  // namespace vtkv
