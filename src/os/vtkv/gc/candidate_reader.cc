// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/candidate_reader.h"

#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

void CandidateReader::start(IoQueue& io, const Slice& slice) {
  VTKV_ASSERT(!m_reading);
  if (slice == m_slice) {
    return;
  }
  m_slice = slice;
  m_bytes.reserve(slice.bytes);
  m_io = IoRequest();
  m_io.op = IoRequest::Op::read;
  m_io.file = slice.segment->file.get();
  m_io.offset = slice.offset;
  m_io.buffers.push_back({m_bytes.data(), slice.bytes});
  m_reading = true;
  io.submit(&m_io);
}

void CandidateReader::reap(IoQueue& io) {
  m_completed.clear();
  io.reap(&m_completed);
  m_reading = m_reading && m_completed.empty();
}

Status CandidateReader::take(AlignedBuffer* bytes) {
  VTKV_ASSERT(!m_reading);
  m_slice = Slice();
  std::swap(*bytes, m_bytes);
  return m_io.result;
}

void CandidateReader::clear() {
  VTKV_ASSERT(!m_reading);
  m_slice = Slice();
  m_bytes = AlignedBuffer();
}

}  // namespace vtkv
