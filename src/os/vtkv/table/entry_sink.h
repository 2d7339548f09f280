// SPDX-License-Identifier: LGPL-2.1-or-later
// Takes the entries that a compaction keeps, in order: one run (table/run_writer.h), or the parts of one
// (compaction/run_part_writer.h).
#pragma once

#include "vtkv/mem/entry.h"
#include "vtkv/span/block_range.h"

namespace vtkv {

class EntrySink {
 public:
  virtual ~EntrySink() = default;
  // REQUIRES: entries come in order. Code::no_space, io_error.
  virtual Status add(const Entry& entry) = 0;
  // Takes over blocks that another run holds, behind everything added so far: the stitch. The caller keeps them pinned
  // until the run is finished. REQUIRES: no version of their keys was or will be added.
  virtual Status stitch(const Span& span, const BlockRange& blocks) = 0;
  // Bytes of entries and their indexes that were written, not stitched.
  virtual uint64_t copied_bytes() const = 0;
};

}  // namespace vtkv
