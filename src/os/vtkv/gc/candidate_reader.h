// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads slices of log segments for the collector, one ahead of need.
//
// One worker's: used inside its step only.
#pragma once

#include "vtkv/env.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/wal/segment_pool.h"

namespace vtkv {

class CandidateReader {
 public:
  // Of which segment, under which epoch, and where in its file; in bytes, aligned.
  struct Slice {
    LogSegment* segment = nullptr;
    uint64_t epoch = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    bool operator==(const Slice&) const = default;
  };

  // Starts to read it, unless it is what was asked for last. REQUIRES: !reading().
  void start(IoQueue& io, const Slice& slice);
  // To be called at the beginning of each step.
  void reap(IoQueue& io);
  bool reading() const { return m_reading; }
  bool is_reading(uint64_t epoch) const { return m_reading && m_slice.epoch == epoch; }
  // What start() was told to read; nothing is held of it any more. REQUIRES: !reading().
  Status take(AlignedBuffer* bytes);
  void clear();  // REQUIRES: !reading()

 private:
  Slice m_slice;
  AlignedBuffer m_bytes;
  IoRequest m_io;
  bool m_reading = false;
  std::vector<IoRequest*> m_completed;  // scratch
};

}  // namespace vtkv
