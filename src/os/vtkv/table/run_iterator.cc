// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/run_iterator.h"

#include <algorithm>

namespace vtkv {

void RunIterator::fail(std::string_view what) {
  m_status = Status::corruption("run " + std::to_string(m_descriptor.run_id) + " of " + m_reader.file().path() + ": " +
                                std::string(what));
  m_block.reset(nullptr);
}

bool RunIterator::check(const BlockIterator& iterator) {
  if (m_status.ok() && !iterator.status().ok()) {
    fail(iterator.status().message());
  }
  return m_status.ok();
}

bool RunIterator::load_index(size_t slice) {
  m_block.reset(nullptr);
  if (slice >= m_descriptor.slices.size()) {
    return false;
  }
  m_slice = slice;
  const Span& span = m_descriptor.spans[m_descriptor.slices[slice].span];
  if (m_index_span == span.id) {
    return true;
  }
  m_index_span = 0;
  std::shared_ptr<const Block> block;
  m_status = m_reader.read(span, span.index_unit, span.index_units, BlockKind::index, &block);
  if (!m_status.ok()) {
    return false;
  }
  m_index.reset(std::move(block));
  m_index_span = span.id;
  return true;
}

bool RunIterator::load_block() {
  m_block.reset(nullptr);
  if (!check(m_index)) {
    return false;
  }
  uint32_t units = 0;
  if (!m_index.valid() || !BlockRange::decode_address(m_index.entry().value, &m_unit, &units) || units == 0 ||
      m_unit < range().unit || m_unit > range().end_unit() || units > range().end_unit() - m_unit) {
    fail("a span's index contradicts the descriptor");
    return false;
  }
  m_end_unit = m_unit + units;
  std::shared_ptr<const Block> block;
  const Span& span = m_descriptor.spans[m_descriptor.slices[m_slice].span];
  m_status = m_ahead.read(span, m_unit, units, range().end_unit(), &block);
  if (!m_status.ok()) {
    return false;
  }
  m_block.reset(std::move(block));
  return true;
}

bool RunIterator::load_first_block(size_t slice) {
  if (!load_index(slice)) {
    return false;
  }
  if (range().unit == 0) {
    m_index.seek_to_first();
  } else {
    m_index.seek(range().first_key, range().first_sequence);
  }
  return load_block();
}

bool RunIterator::load_last_block(size_t slice) {
  if (!load_index(slice)) {
    return false;
  }
  // No slice ends between two versions of a key.
  m_index.seek_for_previous(range().last_key, 0);
  return load_block();
}

bool RunIterator::load_next_block() {
  if (m_end_unit >= range().end_unit()) {
    if (m_slice + 1 < m_descriptor.slices.size()) {
      const SpanSlice& next = m_descriptor.slices[m_slice + 1];
      m_ahead.goes_on_at(m_descriptor.spans[next.span], next.blocks.unit);
    }
    return load_first_block(m_slice + 1);
  }
  m_index.next();
  return load_block();
}

void RunIterator::seek_to_first() {
  m_status = {};
  if (load_first_block(0)) {
    m_block.seek_to_first();
    check(m_block);
  }
}

void RunIterator::seek_to_last() {
  m_status = {};
  m_block.reset(nullptr);
  if (!m_descriptor.slices.empty() && load_last_block(m_descriptor.slices.size() - 1)) {
    m_block.seek_to_last();
    check(m_block);
  }
}

size_t RunIterator::slice_of(std::string_view key, SequenceNumber at_most) const {
  const auto& slices = m_descriptor.slices;
  const auto behind = std::partition_point(slices.begin(), slices.end(), [&](const SpanSlice& slice) {
    return !entry_before(key, at_most, slice.blocks.first_key, slice.blocks.first_sequence);
  });
  return behind == slices.begin() ? 0 : behind - slices.begin() - 1;
}

void RunIterator::seek(std::string_view key, SequenceNumber at_most) {
  m_status = {};
  m_block.reset(nullptr);
  if (m_descriptor.slices.empty()) {
    return;
  }
  const size_t slice = slice_of(key, at_most);
  if (key > m_descriptor.slices[slice].blocks.last_key) {  // between two slices
    if (load_first_block(slice + 1)) {
      m_block.seek_to_first();
      check(m_block);
    }
    return;
  }
  if (!load_index(slice)) {
    return;
  }
  m_index.seek_for_previous(key, at_most);
  if (entry_before(key, at_most, range().first_key, range().first_sequence)) {
    m_index.seek(range().first_key, range().first_sequence);
  }
  if (!load_block()) {
    return;
  }
  m_block.seek(key, at_most);
  if (check(m_block) && !m_block.valid() && load_next_block()) {
    m_block.seek_to_first();
    check(m_block);
  }
}

void RunIterator::seek_key(std::string_view key, SequenceNumber at_most) {
  m_status = {};
  m_block.reset(nullptr);
  if (m_descriptor.slices.empty()) {
    return;
  }
  const size_t slice = slice_of(key, at_most);
  const BlockRange& wanted = m_descriptor.slices[slice].blocks;
  if (key < wanted.first_key || key > wanted.last_key) {
    // Between two slices, or just before the newest version of the key that the next one begins with.
    if (slice + 1 < m_descriptor.slices.size() && m_descriptor.slices[slice + 1].blocks.first_key == key &&
        load_first_block(slice + 1)) {
      m_block.seek_to_first();
      check(m_block);
    }
    return;
  }
  if (entry_before(key, at_most, wanted.first_key, wanted.first_sequence)) {
    seek(key, at_most);
    return;
  }
  if (!load_index(slice)) {
    return;
  }
  m_index.seek_for_previous(key, at_most);
  if (!load_block()) {
    return;
  }
  m_block.seek(key, at_most);
  if (!check(m_block) || m_block.valid()) {
    return;
  }
  // The versions of one key may go on in the next block, of this slice (none is cut there).
  if (m_end_unit < wanted.end_unit()) {
    m_index.next();
    if (check(m_index) && m_index.valid() && m_index.entry().key == key && load_block()) {
      m_block.seek_to_first();
      check(m_block);
    }
  } else if (slice + 1 < m_descriptor.slices.size() && m_descriptor.slices[slice + 1].blocks.first_key == key) {
    if (load_first_block(slice + 1)) {
      m_block.seek_to_first();
      check(m_block);
    }
  }
}

void RunIterator::seek_key_ahead(std::string_view key) {
  // Whatever lies before the block is below the key before. So what the block has at or behind `key` is the first such.
  if (m_block.valid()) {
    m_block.seek(key, UINT64_MAX);
    if (!check(m_block) || m_block.valid()) {
      return;
    }
  }
  seek_key(key, UINT64_MAX);
}

void RunIterator::next() {
  m_block.next();
  if (check(m_block) && !m_block.valid() && load_next_block()) {
    m_block.seek_to_first();
    check(m_block);
  }
}

void RunIterator::previous() {
  m_block.previous();
  if (!check(m_block) || m_block.valid()) {
    return;
  }
  bool loaded = false;
  if (m_unit > range().unit) {
    m_index.previous();
    loaded = load_block();
  } else {
    m_block.reset(nullptr);
    loaded = m_slice > 0 && load_last_block(m_slice - 1);
  }
  if (loaded) {
    m_block.seek_to_last();
    check(m_block);
  }
}

}  // namespace vtkv
