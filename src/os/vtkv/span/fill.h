// Where a run's new blocks go: spans of entry blocks, each with its index behind them.
//
// A span's index names blocks by their place in the span, so that it serves every run that refers to a part
// of the span, unchanged. Not thread-safe.
#pragma once

#include "vtkv/span/block_range.h"
#include "vtkv/span/span_writer.h"

namespace vtkv {

class Fill {
 public:
  // A span ends when its index would exceed `index_bytes`, or its zone is full.
  Fill(Env* env, std::shared_ptr<ZoneFile> file, ZoneStream stream, uint32_t index_bytes, SpanList* list);

  // Finishes the builder's block, which holds what *block says, and takes it. Sets the block's place and the
  // ordinal of its span in the list; the span is complete only after finish().
  Status append(BlockBuilder* builder, BlockRange* block, uint32_t* span);
  Status finish();
  uint64_t bytes() const { return m_writer.bytes(); }

 private:
  Status close_span();

  const uint32_t m_index_bytes;
  SpanList* const m_list;
  SpanWriter m_writer;
  BlockBuilder m_index{BlockKind::index};
  uint32_t m_span = 0;  // that the index in the making belongs to
  std::string m_line;   // scratch
};

}  // namespace vtkv
