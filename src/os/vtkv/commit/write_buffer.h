// SPDX-License-Identifier: LGPL-2.1-or-later
// Batches that are gathered where their record will be formed: [room for a segment header, record header and
// frame][batch][batch]…, so that they are copied once and written as they lie.
//
// Written by one thread at a time under the database's write lock, until the commit worker takes it. The
// memtable reads large values from here as well. Once the buffer is in the log its bytes may be released: readers
// pin them for the moment of a copy, or find the value in the log.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/mem/logged_bytes.h"
#include "vtkv/wal/log_format.h"

namespace vtkv {

// Of writers that do not wait, not in the log's files yet; beyond it they do wait.
inline uint64_t unwritten_bytes_most(size_t memtable_bytes) {
  return std::clamp<uint64_t>(memtable_bytes / 2, 1u << 20, 32u << 20);
}

class WriteBuffer final : public LoggedBytes {
 public:
  static constexpr size_t kHeadBytes = kLogBlockBytes + sizeof(record_header_t) + sizeof(batch_frame_t);
  static constexpr size_t kUsualBytes = 1u << 20;

  // `bytes` of batches will fit.
  explicit WriteBuffer(size_t bytes) : m_buffer(kHeadBytes + bytes), m_capacity(m_buffer.capacity() - kHeadBytes) {}

  bool fits(size_t bytes) const { return m_bytes + bytes <= m_capacity; }
  // Returns the copy. REQUIRES: fits, and not released.
  std::string_view append(std::string_view encoded, uint32_t sequence_count, SequenceNumber last) {
    char* const to = m_buffer.data() + kHeadBytes + m_bytes;
    std::memcpy(to, encoded.data(), encoded.size());
    m_bytes += encoded.size();
    m_sequence_count += sequence_count;
    last_sequence = last;
    return {to, encoded.size()};
  }
  std::string_view encoded() const { return {m_buffer.data() + kHeadBytes, m_bytes}; }
  size_t bytes() const { return m_bytes; }
  size_t capacity() const { return m_capacity; }
  uint32_t sequence_count() const { return m_sequence_count; }
  AlignedBuffer& buffer() { return m_buffer; }

  uint64_t opened_us = 0;  // when it was opened

 private:
  void free_bytes() override { m_buffer = AlignedBuffer(); }

  AlignedBuffer m_buffer;
  const size_t m_capacity;
  size_t m_bytes = 0;
  uint32_t m_sequence_count = 0;
};

}  // namespace vtkv
