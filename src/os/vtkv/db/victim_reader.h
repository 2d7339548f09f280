// Reads pieces of log segments for the collector, one ahead of need.
//
// One worker's: used inside its step only.
#pragma once

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/env/env.h"
#include "vtkv/vlog/segment_pool.h"

namespace vtkv {

class VictimReader {
 public:
  // Of which segment, under which epoch, and where in its file; in bytes, aligned.
  struct Piece {
    LogSegment* segment = nullptr;
    uint64_t epoch = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    bool operator==(const Piece&) const = default;
  };

  // Starts to read it, unless it is what was asked for last. REQUIRES: !reading().
  void start(IoQueue& io, const Piece& piece);
  // To be called at the beginning of each step.
  void reap(IoQueue& io);
  bool reading() const { return m_reading; }
  bool is_reading(uint64_t epoch) const { return m_reading && m_piece.epoch == epoch; }
  // What start() was told to read; nothing is held of it any more. REQUIRES: !reading().
  Status take(AlignedBuffer* bytes);
  void clear();  // REQUIRES: !reading()

 private:
  Piece m_piece;
  AlignedBuffer m_bytes;
  IoRequest m_io;
  bool m_reading = false;
  std::vector<IoRequest*> m_completed;  // scratch
};

}  // namespace vtkv
