// SPDX-License-Identifier: LGPL-2.1-or-later
// What the collector has relocated and is perhaps not in the log's files yet, in the order of its sequences.
//
// Not thread-safe: the collector's worker's. Never waits.
#pragma once

#include <cstddef>
#include <deque>

#include "vtkv/write_batch.h"

namespace vtkv {

class UnwrittenRelocations {
 public:
  // So many bytes, at or below `last`.
  void add(SequenceNumber last, size_t bytes) {
    m_relocations.push_back({last, bytes});
    m_bytes += bytes;
  }
  // Everything at or below `logged` is in the files.
  void forget_logged(SequenceNumber logged) {
    while (!m_relocations.empty() && m_relocations.front().last <= logged) {
      m_bytes -= m_relocations.front().bytes;
      m_relocations.pop_front();
    }
  }
  size_t bytes() const { return m_bytes; }

 private:
  struct Relocated {
    SequenceNumber last = 0;
    size_t bytes = 0;
  };

  std::deque<Relocated> m_relocations;
  size_t m_bytes = 0;
};

}  // namespace vtkv
