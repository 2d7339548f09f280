// The descriptor of a run: the body of its block of kind descriptor. Format version: the block's.
//
//   varint64  run id
//   varint64  entries; varint64 of them removals
//   varint64  smallest sequence; varint64 greatest (of entries and range removals)
//   string    smallest key; string greatest key (of entries; both empty without entries)
//   varint32  spans; of each: fixed64 id, varint64 offset / 4096, varint32 units, byte 1: holds entries
//   varint32  index blocks; of each: string first key, varint64 its sequence, BlockHandle
//   varint32  removals blocks; of each: BlockHandle
//   varint32  filter blocks; of each: BlockHandle
// string: varint32 length, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vtkv/span/block_format.h"
#include "vtkv/status.h"
#include "vtkv/write_batch.h"

namespace vtkv {

// The top of a run's secondary index: one per index block.
struct IndexRoot {
  std::string key;
  SequenceNumber sequence = 0;
  BlockHandle block;
};

struct RunDescriptor {
  uint64_t run_id = 0;
  uint64_t entries = 0;
  uint64_t removals = 0;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber greatest_sequence = 0;
  std::string smallest_key;
  std::string greatest_key;
  std::vector<Span> spans;
  std::vector<IndexRoot> index;
  std::vector<BlockHandle> removal_blocks;
  std::vector<BlockHandle> filter_blocks;

  uint64_t bytes() const;  // of all spans
  void encode(std::string* out) const;
  // Code::corruption when malformed, when a span does not lie in the file, or a handle not in its span.
  static Status decode(std::string_view body, uint64_t file_bytes, RunDescriptor* descriptor);
};

// Where a descriptor lies; kept in the manifest.
struct RunLocation {
  uint64_t run_id = 0;
  uint32_t level = 0;
  Span span;  // that holds the descriptor block and nothing else of this run
  uint32_t unit = 0;
};

// Is the handle inside its span?
bool is_inside(const BlockHandle& handle, const std::vector<Span>& spans);

}  // namespace vtkv
