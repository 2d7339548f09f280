// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/span/span_writer.h"

namespace vtkv {

namespace {
constexpr size_t kWriteBytes = 512 << 10;
}  // namespace

SpanWriter::SpanWriter(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, SpanList* list)
    : m_env(env), m_file(std::move(file)), m_stream(stream), m_list(list) {}

SpanWriter::~SpanWriter() { close_range(); }

void SpanWriter::end_span() {
  if (m_growing) {
    // The span's own pin comes before the range's goes.
    const Span& span = m_list->spans[m_span];
    m_list->pins.add(span.offset, span.bytes());
    m_growing = false;
  }
}

void SpanWriter::close_range() {
  end_span();
  if (m_open) {
    m_open = false;
    m_file->map().release(m_stream, m_range, m_used_bytes);
  }
}

Status SpanWriter::acquire(uint64_t bytes_min) {
  VTKV_RETURN_IF_ERROR(write_buffer());
  close_range();
  VTKV_RETURN_IF_ERROR(m_file->acquire(m_stream, bytes_min, &m_range));
  m_open = true;
  m_used_bytes = 0;
  return {};
}

Status SpanWriter::append(BlockBuilder* builder, BlockHandle* handle, uint64_t room_behind) {
  // With the restarts that finish() adds, bytes() is exact.
  const uint32_t units = units_of(builder->bytes());
  const uint64_t bytes = static_cast<uint64_t>(units) * kUnitBytes;
  const uint64_t wanted = m_growing ? bytes : bytes + room_behind;
  if (!m_open || m_range.bytes - m_used_bytes < wanted) {
    VTKV_RETURN_IF_ERROR(acquire(bytes + room_behind));
  }
  if (!m_growing) {
    m_growing = true;
    m_span = m_list->spans.size();
    m_list->spans.push_back({m_env->random_u64(), m_range.offset + m_used_bytes});
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
