// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a run's new blocks go: spans of entry blocks, each with its index behind them.
//
// A span's index names blocks by their address in the span, so that it serves every run that refers to a slice
// of the span, unchanged. Not thread-safe.
//
// Both the index and the line of the run's descriptor, which stays in memory, hold whole keys. So that long keys do not
// make them as large as what they lead to, blocks grow with what their line of the index takes, and spans with what
// their slice takes in memory:
//   * blocks of long keys are kIndexShare times as large as their line, but no larger than kLongBlockBytes for it;
//   * spans are kSliceMemoryShare times as large as their slice's memory, but for the end of a zone, of a run, and an
//     index of kIndexBytesMost.
// Blocks are as large as that before they are compressed, spans on disk. So the indexes of compressed blocks are a
// larger share of the tree.
#pragma once

#include "vtkv/span/block_range.h"
#include "vtkv/span/span_writer.h"

namespace vtkv {

inline constexpr size_t kIndexShare = 16;
inline constexpr size_t kSliceMemoryShare = 256;
inline constexpr size_t kLongBlockBytes = 64 << 10;
inline constexpr size_t kIndexBytesMost = 64 << 10;  // more only for one line
// What a slice and its span take in memory, beside the keys.
inline constexpr size_t kSliceMemoryBytes = 168;

class Fill {
 public:
  // `block_bytes`: how large blocks and indexes are of keys that are not long.
  Fill(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, uint32_t block_bytes, SpanList* list);

  // How large a block that holds this should become.
  size_t block_bytes_wanted(const BlockRange& block) const;
  // Finishes the builder's block, which holds what *block says, and takes it. Sets the block's address and the
  // ordinal of its span in the list; the span is complete only after finish().
  Status append(BlockBuilder* builder, BlockRange* block, uint32_t* span);
  Status finish();
  uint64_t bytes() const { return m_writer.bytes(); }

 private:
  Status close_span();
  bool is_span_large_enough() const;

  const uint32_t m_block_bytes;
  SpanList* const m_list;
  SpanWriter m_writer;
  BlockBuilder m_index{BlockKind::index};
  uint32_t m_span = 0;  // that the index in the making belongs to
  // Of that span:
  std::string m_last_line_key;
  size_t m_first_key_bytes = 0, m_last_key_bytes = 0;
  uint64_t m_span_bytes = 0;
  std::string m_line;  // scratch
};

}  // namespace vtkv
