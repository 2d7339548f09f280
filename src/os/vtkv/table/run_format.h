// SPDX-License-Identifier: LGPL-2.1-or-later
// The descriptor of a run: the body of its block of kind descriptor, or of several (span/long_body.h). Its bytes:
// doc/on_disk_format.md, "Run descriptor", "Span of a run", "Slice of a run".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/span/block_format.h"
#include "vtkv/span/block_range.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// What a run takes of a span: the line of the top of its secondary index. A span that was written for
// another run is in the list like one of its own: that is the stitch.
struct SpanSlice {
  uint32_t span = 0;  // ordinal in the run's list
  BlockRange blocks;
};

// Adds blocks behind `slices`, to the last one when they continue it.
void append_slice(uint32_t span, BlockRange blocks, std::vector<SpanSlice>* slices);

struct RunDescriptor {
  uint64_t run_id = 0;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber greatest_sequence = 0;
  std::vector<Span> spans;
  std::vector<SpanSlice> slices;
  std::vector<BlockHandle> tombstone_blocks;
  std::vector<BlockHandle> filter_blocks;

  uint64_t entries() const;
  uint64_t doubtful() const;
  // REQUIRES: there are slices.
  const std::string& smallest_key() const { return slices.front().blocks.first_key; }
  const std::string& greatest_key() const { return slices.back().blocks.last_key; }
  uint64_t entry_bytes() const;  // of the blocks that the slices name
  uint64_t bytes() const;        // of these, their indexes, and the other spans
  size_t memory_bytes() const;
  void shrink_to_fit();  // gives up memory that growing has left unused
  void encode(std::string* out) const;
  // Code::corruption when malformed, when a span does not lie in the file, or a block not in its span.
  static Status decode(std::string_view body, uint64_t file_bytes, RunDescriptor* descriptor);
};

// Where a descriptor lies, and which sorted run it is a part of (table/sorted_run.h); kept in the manifest.
struct RunLocation {
  uint64_t run_id = 0;
  uint32_t level = 0;
  Span span;  // that holds the descriptor block and nothing else of this run
  uint32_t unit = 0;
  uint64_t sorted_run_id = 0;
};

// The value of an entry in a block of tombstones, of equal ranges: doc/on_disk_format.md, "Range tombstone".
struct TombstoneRange {
  std::string_view end;
  std::vector<SequenceNumber> sequences;  // descending

  void encode(std::string* out) const;
  // False when malformed, or with a sequence 0. `end` points into `in`.
  bool decode(std::string_view in);
};

// Is the handle inside its span?
bool is_inside(const BlockHandle& handle, const std::vector<Span>& spans);

}  // namespace vtkv
