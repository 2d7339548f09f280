#include "vtkv/span/fill.h"

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {
// Of an index line beyond its two keys: nine varints.
constexpr size_t kLineBytesMax = 100;
}  // namespace

Fill::Fill(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, uint32_t index_bytes, SpanList* list)
    : m_index_bytes(index_bytes), m_list(list), m_writer(env, std::move(file), stream, list) {}

Status Fill::append(BlockBuilder* builder, BlockRange* block, uint32_t* span) {
  const size_t line_bytes = block->first_key.size() + block->last_key.size() + kLineBytesMax;
  const size_t block_bytes = static_cast<size_t>(units_of(builder->bytes())) * kUnitBytes;
  if (!m_index.empty() &&
      (m_index.bytes() + line_bytes > m_index_bytes ||
       !m_writer.fits(block_bytes + static_cast<size_t>(units_of(m_index.bytes() + line_bytes)) * kUnitBytes))) {
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
  return {};
}

Status Fill::finish() {
  if (!m_index.empty()) {
    VTKV_RETURN_IF_ERROR(close_span());
  }
  return m_writer.finish();
}

}  // namespace vtkv
