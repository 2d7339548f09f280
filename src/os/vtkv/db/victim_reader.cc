#include "vtkv/db/victim_reader.h"

#include <utility>

#include "vtkv/util/invariants.h"

namespace vtkv {

void VictimReader::start(IoQueue& io, const Piece& piece) {
  VTKV_ASSERT(!m_reading);
  if (piece == m_piece) {
    return;
  }
  m_piece = piece;
  m_bytes.reserve(piece.bytes);
  m_io = IoRequest();
  m_io.op = IoRequest::Op::read;
  m_io.file = piece.segment->file.get();
  m_io.offset = piece.offset;
  m_io.buffers.push_back({m_bytes.data(), piece.bytes});
  m_reading = true;
  io.submit(&m_io);
}

void VictimReader::reap(IoQueue& io) {
  m_completed.clear();
  io.reap(&m_completed);
  m_reading = m_reading && m_completed.empty();
}

Status VictimReader::take(AlignedBuffer* bytes) {
  VTKV_ASSERT(!m_reading);
  m_piece = Piece();
  std::swap(*bytes, m_bytes);
  return m_io.result;
}

void VictimReader::clear() {
  VTKV_ASSERT(!m_reading);
  m_piece = Piece();
  m_bytes = AlignedBuffer();
}

}  // namespace vtkv
