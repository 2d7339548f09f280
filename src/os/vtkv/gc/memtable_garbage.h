// SPDX-License-Identifier: LGPL-2.1-or-later
// Should a memtable be flushed because nobody writes any more? What it deletes takes its space in the log until a flush
// tells the account of it. An idle memtable that would free clearly more than its flush writes is worth one.
//
// Not thread-safe: the collector's worker's. Takes no lock of its own; looking keys up may read blocks of the tree.
#pragma once

#include <chrono>
#include <optional>

#include "vtkv/iter/read_state.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class MemtableGarbage {
 public:
  static constexpr std::chrono::microseconds kIdle{5'000'000};

  // How long to wait before the next look; none: there is nothing to do until somebody writes. `visible`: the newest
  // sequence. *worth_flushing: said once for it.
  std::optional<std::chrono::microseconds> look(const ReadState& state, SequenceNumber visible, uint64_t now_us,
                                                uint64_t segment_bytes, bool* worth_flushing);

 private:
  SequenceNumber m_seen = 0;  // the newest, since m_seen_us
  uint64_t m_seen_us = 0;
  SequenceNumber m_examined = 0;
};

}  // namespace vtkv
