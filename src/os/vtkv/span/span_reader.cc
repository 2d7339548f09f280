// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/span_reader.h"

#include <algorithm>

#include "vtkv/env/read_retries.h"

namespace vtkv {

namespace {
constexpr uint32_t kWindowUnitsMin = (32 << 10) / kUnitBytes;
constexpr uint32_t kWindowUnitsMax = (512 << 10) / kUnitBytes;
// What lies between two blocks that are read in turn, such as a span's index, is no jump.
constexpr uint64_t kGapBytesMax = 64 << 10;
// A scan that takes only a few blocks shall not read more.
constexpr uint32_t kScanStepsMin = 2;
}  // namespace

Status SpanReader::read(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
                        std::shared_ptr<const Block>* block) const {
  if (kind == BlockKind::index && m_spare_indexes && m_spare_indexes->contains(span.id)) {
    *block = m_spare_indexes->at(span.id);
    return {};
  }
  *block = find(span, unit);
  if (*block) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(read_uncached(span, unit, units, kind, block));
  remember(span, unit, *block);
  return {};
}

Status SpanReader::read_uncached(const Span& span, uint32_t unit, uint32_t units, BlockKind kind,
                                 std::shared_ptr<const Block>* block) const {
  const size_t bytes = static_cast<size_t>(units) * kUnitBytes;
  const uint64_t offset = span.offset + static_cast<uint64_t>(unit) * kUnitBytes;
  AlignedBuffer buffer(bytes);
  const Status status = read_with_retries([&] {
    VTKV_RETURN_IF_ERROR(m_file->file()->read(offset, bytes, buffer.data()));
    return Block::parse({buffer.data(), bytes}, {kind, span.id, unit}, block);
  });
  if (status.ok()) {
    return {};
  }
  return status.with_message("cannot read " + std::to_string(bytes) + " bytes at " + std::to_string(offset) + " of " +
                             m_file->path() + ": " + std::string(status.message()));
}

bool ReadAhead::holds(const Span& span, uint32_t unit, uint32_t units) const {
  return span.id == m_span_id && unit >= m_unit && units <= m_units && unit - m_unit <= m_units - units;
}

Status ReadAhead::read(const Span& span, uint32_t unit, uint32_t units, uint32_t end_unit,
                       std::shared_ptr<const Block>* block) {
  const uint64_t offset = span.offset + static_cast<uint64_t>(unit) * kUnitBytes;
  const bool jumped = offset < m_next_offset || offset - m_next_offset > kGapBytesMax;
  m_steps = jumped ? 0 : m_steps + 1;
  m_window_units = jumped ? kWindowUnitsMin : std::max(kWindowUnitsMin, m_window_units);
  m_next_offset = offset + static_cast<uint64_t>(units) * kUnitBytes;
  if (m_use == Use::scan) {
    if (m_steps < kScanStepsMin) {
      return m_reader->read(span, unit, units, m_kind, block);
    }
    *block = m_reader->find(span, unit);
    if (*block) {
      return {};
    }
  }
  VTKV_RETURN_IF_ERROR(read_window(span, unit, units, end_unit, block));
  if (m_use == Use::scan && m_window_units < kWindowUnitsMax) {
    m_reader->remember(span, unit, *block);
  }
  return {};
}

Status ReadAhead::read_window(const Span& span, uint32_t unit, uint32_t units, uint32_t end_unit,
                              std::shared_ptr<const Block>* block) {
  if (!holds(span, unit, units)) {
    m_units = 0;
    const uint32_t wanted = std::min(end_unit - unit, std::max(units, m_window_units));
    m_window_units = std::min(kWindowUnitsMax, 2 * m_window_units);
    const size_t bytes = static_cast<size_t>(wanted) * kUnitBytes;
    m_buffer.reserve(bytes);
    const uint64_t offset = span.offset + static_cast<uint64_t>(unit) * kUnitBytes;
    if (!m_reader->file().file()->read(offset, bytes, m_buffer.data()).ok()) {
      return m_reader->read_uncached(span, unit, units, m_kind, block);
    }
    m_span_id = span.id;
    m_unit = unit;
    m_units = wanted;
  }
  const char* bytes = m_buffer.data() + static_cast<size_t>(unit - m_unit) * kUnitBytes;
  const Status status = Block::parse({bytes, static_cast<size_t>(units) * kUnitBytes}, {m_kind, span.id, unit}, block);
  return status.ok() ? status : m_reader->read_uncached(span, unit, units, m_kind, block);
}

}  // namespace vtkv
