#include "vtkv/span/span_writer.h"

namespace vtkv {

namespace {
constexpr size_t kWriteBytes = 512 << 10;
}  // namespace

SpanWriter::SpanWriter(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, bool holds_entries,
                       SpanList* list)
    : m_env(env),
      m_file(std::move(file)),
      m_stream(stream),
      m_holds_entries(holds_entries),
      m_list(list) {}

SpanWriter::~SpanWriter() { close_range(); }

void SpanWriter::close_range() {
  if (!m_open) {
    return;
  }
  m_open = false;
  // The span's own pin comes before the range's goes.
  const Span& span = m_list->spans[m_span];
  m_list->pins.add(span.offset, span.bytes());
  m_file->map().release(m_stream, m_range, m_used_bytes);
}

Status SpanWriter::start_span(uint32_t units_min) {
  VTKV_RETURN_IF_ERROR(write_buffer());
  close_range();
  VTKV_RETURN_IF_ERROR(m_file->acquire(m_stream, static_cast<uint64_t>(units_min) * kUnitBytes, &m_range));
  m_open = true;
  m_used_bytes = 0;
  m_span = m_list->spans.size();
  m_list->spans.push_back({m_env->random_u64(), m_range.offset, 0, m_holds_entries});
  return {};
}

Status SpanWriter::append(BlockBuilder* builder, BlockHandle* handle) {
  // With the restarts that finish() adds, bytes() is exact.
  const uint32_t units = units_of(builder->bytes());
  if (!m_open || m_range.bytes - m_used_bytes < static_cast<uint64_t>(units) * kUnitBytes) {
    VTKV_RETURN_IF_ERROR(start_span(units));
  }
  Span& span = m_list->spans[m_span];
  *handle = {static_cast<uint32_t>(m_span), span.units, units};
  m_block.clear();
  builder->finish(span.id, span.units, &m_block);
  span.units += units;
  m_used_bytes += m_block.size();
  m_total_bytes += m_block.size();

  m_buffer.append(m_block);
  return m_buffer.size() >= kWriteBytes ? write_buffer() : Status();
}

Status SpanWriter::write_buffer() {
  if (m_buffer.empty()) {
    return {};
  }
  const uint64_t offset = m_range.offset + m_used_bytes - m_buffer.size();
  Status status = m_file->file()->write(offset, m_buffer.data(), m_buffer.size());
  m_buffer.clear();
  return status;
}

Status SpanWriter::finish() {
  Status status = write_buffer();
  close_range();
  return status;
}

}  // namespace vtkv
