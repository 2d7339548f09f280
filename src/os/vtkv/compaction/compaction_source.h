// SPDX-License-Identifier: LGPL-2.1-or-later
// One run as a compaction sees it: a sequence of blocks that can be passed over unread, or opened and walked.
//
// Not thread-safe. The run must outlive it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vtkv/table/run.h"

namespace vtkv {

// The keys of [begin, end); without an end, all from `begin` on.
struct KeyRange {
  std::string begin;
  std::optional<std::string> end;
  bool operator==(const KeyRange&) const = default;
};

class CompactionSource {
 public:
  // Before the first block. Sees no entry from `end` on.
  explicit CompactionSource(const Run* run, std::optional<std::string> end = {})
      : m_run(*run),
        m_descriptor(run->descriptor()),
        m_end(std::move(end)),
        m_ahead(&run->reader(), ReadAhead::Use::compaction) {}

  // From before the first block to the first entry at or behind `begin`.
  Status go_to(std::string_view begin);
  bool valid() const { return m_slice < m_descriptor.slices.size() && (!m_end || key() < *m_end); }
  // Stands before a block rather than on an entry of an open one.
  bool at_block() const { return !m_block.valid(); }
  // Of the next entry. REQUIRES: valid().
  std::string_view key() const { return m_block.valid() ? m_block.entry().key : block_key(); }
  SequenceNumber sequence() const { return m_block.valid() ? m_block.entry().sequence : block_sequence(); }

  // Opens the block that it stands before, and on its first entry. REQUIRES: at_block().
  Status open();
  const Entry& entry() const { return m_block.entry(); }  // REQUIRES: !at_block()
  Status next();                                          // likewise

  // Blocks that one move passes over, in key order; neighbours in one span come as one.
  using Slices = std::vector<SpanSlice>;
  using Wanted = std::function<bool(const BlockRange&)>;
  // Passes over blocks for as long as each, asked alone or as all that is left of a slice, is wanted. Reads
  // indexes only. REQUIRES: at_block().
  Status pass(const Wanted& wanted, Slices* passed);
  // The same for blocks that a new run may refer to: they lie one behind the other in the file, and the first
  // block behind them begins with another key. When less than `bytes_min` of them come together, nothing is
  // passed, and must_open() says so until these blocks have been opened.
  Status pass_together(const Wanted& wanted, uint64_t bytes_min, Slices* passed);
  bool must_open() const { return m_slice < m_open_slice || (m_slice == m_open_slice && unit() < m_open_unit); }

  // Of the block that it stands before: in its span, and in the file.
  uint32_t unit() const { return m_in_slice ? m_next.unit : valid() ? slice().blocks.unit : 0; }
  const Span& span() const { return span_of(slice()); }
  uint64_t offset() const { return span_of(slice()).offset + uint64_t{unit()} * kUnitBytes; }
  const Span& span_of(const SpanSlice& slice) const { return m_descriptor.spans[slice.span]; }

 private:
  const SpanSlice& slice() const { return m_descriptor.slices[m_slice]; }
  std::string_view block_key() const { return m_in_slice ? m_next.first_key : slice().blocks.first_key; }
  SequenceNumber block_sequence() const { return m_in_slice ? m_next.first_sequence : slice().blocks.first_sequence; }
  Status enter_slice();  // reads the index: m_next is the first block of the slice
  Status read_line();    // of the index, into m_next
  Status leave_block();  // goes before the block behind m_next
  void leave_slice();
  Status pass_blocks(const Wanted& wanted, bool together, Slices* passed);
  bool ends_within(const BlockRange& blocks) const { return !m_end || blocks.last_key < *m_end; }
  bool is_contiguous(const Slices& passed) const;
  Status ends_before_another_key(const BlockRange& blocks, bool whole_slice, bool* another);

  const Run& m_run;
  const RunDescriptor& m_descriptor;
  const std::optional<std::string> m_end;
  ReadAhead m_ahead;
  size_t m_slice = 0;
  bool m_in_slice = false;  // the index of the slice is loaded, m_next is the block it stands before or in
  std::shared_ptr<const Block> m_index_block;
  uint64_t m_index_span = 0;  // id of the span whose index it is; 0: none
  BlockIterator m_index;
  BlockRange m_next;
  BlockIterator m_block;
  size_t m_open_slice = 0;  // must_open(): up to here
  uint32_t m_open_unit = 0;
};

}  // namespace vtkv
