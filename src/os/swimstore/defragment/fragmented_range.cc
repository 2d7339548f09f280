// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/defragment/fragmented_range.h"

#include <algorithm>
#include <utility>

#include "swimstore/container/best_fit.h"

namespace swimstore {

void RangeFinder::add(uint64_t block, const Extent& extent) {
  if (m_range.count > 0 && m_range.first + m_range.count != block) {
    end_range();
  }
  if (m_range.count == 0) {
    m_range.first = block;
  }
  const uint64_t position = extent.slot.byte_offset() + uint64_t{extent.slot_block} * kBlockBytes;
  if (m_range.count == 0 || m_container != extent.slot.container() || m_next_position != position) {
    ++m_range.pieces;
  }
  m_range.count += extent.count;
  m_container = extent.slot.container();
  m_next_position = position + uint64_t{extent.count} * kBlockBytes;
}

std::vector<FragmentedRange> RangeFinder::finish() {
  end_range();
  return std::exchange(m_ranges, {});
}

void RangeFinder::end_range() {
  if (m_range.count > 0) {
    std::vector<WriteSlice> slices;
    best_fit(m_range.bytes(), &slices);
    // What lies better than a new write would is left as it is.
    m_range.best_pieces = std::min<uint64_t>(slices.size(), m_range.pieces);
    m_ranges.push_back(m_range);
  }
  m_range = {};
}

}  // namespace swimstore
