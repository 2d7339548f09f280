// SPDX-License-Identifier: LGPL-2.1-or-later
// Walks the entries of one run: slices in memory, the index of a span, its blocks of entries.
#pragma once

#include "vtkv/span/span_reader.h"
#include "vtkv/table/run_format.h"

namespace vtkv {

class RunIterator final : public EntryIterator {
 public:
  RunIterator(const SpanReader* reader, const RunDescriptor* descriptor)
      : m_reader(*reader), m_descriptor(*descriptor), m_ahead(reader, ReadAhead::Use::scan) {}

  bool valid() const override { return m_block.valid(); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view key, SequenceNumber at_most) override;
  // As seek, but when no entry of `key` itself is there, it may end invalid instead of on a later key:
  // a lookup then reads no block that cannot hold its key.
  void seek_key(std::string_view key, SequenceNumber at_most);
  // The same for the newest version of `key`. REQUIRES: it is not below the one looked for before.
  void seek_key_ahead(std::string_view key);
  void next() override;
  void previous() override;
  const Entry& entry() const override { return m_block.entry(); }
  Status status() const override { return m_status; }

 private:
  const BlockRange& range() const { return m_descriptor.slices[m_slice].blocks; }
  // The last slice that begins at or before (key, at_most), or the first.
  size_t slice_of(std::string_view key, SequenceNumber at_most) const;
  bool load_index(size_t slice);  // false: the end, or an error
  bool load_block();              // that m_index points to
  bool load_first_block(size_t slice);
  bool load_last_block(size_t slice);
  bool load_next_block();
  bool check(const BlockIterator& iterator);
  void fail(std::string_view what);

  const SpanReader& m_reader;
  const RunDescriptor& m_descriptor;
  ReadAhead m_ahead;
  size_t m_slice = 0;
  uint64_t m_index_span = 0;  // id of the span that m_index is of; 0: none
  BlockIterator m_index;
  uint32_t m_unit = 0;      // of the span: where the block lies
  uint32_t m_end_unit = 0;  // and what is behind it
  BlockIterator m_block;
  Status m_status;
};

}  // namespace vtkv
