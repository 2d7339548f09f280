// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/fill.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
// Of an index line beyond its two keys: nine varints.
constexpr size_t kLineBytesMax = 100;
constexpr size_t kLineBytesUsual = 30;
}  // namespace

Fill::Fill(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, uint32_t block_bytes, SpanList* list)
    : m_block_bytes(block_bytes), m_list(list), m_writer(env, std::move(file), stream, list) {}

size_t Fill::block_bytes_wanted(const BlockRange& block) const {
  const size_t most = block.first_key.size() + block.last_key.size() + kLineBytesUsual;
  if (most * kIndexShare <= m_block_bytes) {
    return m_block_bytes;
  }
  const auto shared = [](const std::string& a, const std::string& b) {
    return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first -
                               a.begin());
  };
  const size_t line = most - shared(block.first_key, block.last_key) - shared(block.first_key, m_last_line_key);
  return std::max<size_t>(m_block_bytes, std::min(kLongBlockBytes, line * kIndexShare) / kUnitBytes * kUnitBytes);
}

bool Fill::is_span_large_enough() const {
  return m_span_bytes >= kSliceMemoryShare * (kSliceMemoryBytes + m_first_key_bytes + m_last_key_bytes);
}

Status Fill::append(BlockBuilder* builder, BlockRange* block, uint32_t* span) {
  const size_t line_bytes = block->first_key.size() + block->last_key.size() + kLineBytesMax;
  const size_t block_bytes = static_cast<size_t>(units_of(builder->bytes())) * kUnitBytes;
  const size_t index_bytes = m_index.bytes() + line_bytes;
  const bool index_is_full = index_bytes > kIndexBytesMost || (index_bytes > m_block_bytes && is_span_large_enough());
  if (!m_index.empty() &&
      (index_is_full || !m_writer.fits(block_bytes + static_cast<size_t>(units_of(index_bytes)) * kUnitBytes))) {
    VTKV_RETURN_IF_ERROR(close_span());
  }
  BlockHandle handle;
  const size_t room = static_cast<size_t>(units_of(m_index.bytes() + line_bytes)) * kUnitBytes;
  VTKV_RETURN_IF_ERROR(m_writer.append(builder, &handle, room));
  block->unit = handle.unit;
  block->units = handle.units;
  *span = m_span = handle.span;
  m_line.clear();
  block->encode(&m_line);
  if (m_index.empty()) {
    m_first_key_bytes = block->first_key.size();
  }
  m_last_line_key = block->first_key;
  m_last_key_bytes = block->last_key.size();
  m_span_bytes += block_bytes;
  m_index.add({block->first_key, block->first_sequence, EntryType::value, m_line});
  return {};
}

Status Fill::close_span() {
  BlockHandle handle;
  VTKV_RETURN_IF_ERROR(m_writer.append(&m_index, &handle));
  VTKV_ASSERT(handle.span == m_span);
  m_list->spans[m_span].index_unit = handle.unit;
  m_list->spans[m_span].index_units = handle.units;
  m_writer.end_span();
  m_last_line_key.clear();
  m_span_bytes = 0;
  return {};
}

Status Fill::finish() {
  if (!m_index.empty()) {
    VTKV_RETURN_IF_ERROR(close_span());
  }
  return m_writer.finish();
}

}  // namespace vtkv
