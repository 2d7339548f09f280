// SPDX-License-Identifier: LGPL-2.1-or-later
// A place in the log's history: the last record that something covers (doc/crash_consistency.md, The
// mechanism, rule 3).
#pragma once

#include <cstdint>

#include "vtkv/write_batch.h"

namespace vtkv {

struct LogPosition {
  SequenceNumber sequence = 0;
  uint64_t segment_id = 0;
  uint64_t epoch = 0;
  uint64_t end_offset = 0;       // where the next record of that segment would start
  uint32_t header_checksum = 0;  // of that record; 0 when there is none yet
};

}  // namespace vtkv
