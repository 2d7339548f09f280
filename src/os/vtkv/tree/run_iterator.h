// Walks the entries of one run: index roots in memory, index blocks, entry blocks.
#pragma once

#include "vtkv/span/span_reader.h"
#include "vtkv/tree/run_format.h"

namespace vtkv {

class RunIterator final : public EntryIterator {
 public:
  // `ahead`: entry blocks are read ahead; nothing comes from the cache or goes to it.
  RunIterator(const SpanReader* reader, const RunDescriptor* descriptor, bool ahead)
      : m_reader(*reader), m_descriptor(*descriptor), m_ahead(reader), m_use_ahead(ahead) {}

  bool valid() const override { return m_status.ok() && m_block.valid(); }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view key, SequenceNumber at_most) override;
  // As seek, but when no entry of `key` itself is there, it may end invalid instead of on a later key:
  // a lookup then reads no block that cannot hold its key.
  void seek_key(std::string_view key, SequenceNumber at_most);
  void next() override;
  void previous() override;
  const Entry& entry() const override { return m_block.entry(); }
  Status status() const override { return m_status; }

 private:
  bool load_index_block(size_t root);  // false: the end, or an error
  bool load_block();                   // that m_index points to
  bool next_block();
  bool previous_block();
  bool seek_index(std::string_view key, SequenceNumber at_most);
  bool check(const BlockIterator& part);

  const SpanReader& m_reader;
  const RunDescriptor& m_descriptor;
  ReadAhead m_ahead;
  const bool m_use_ahead;
  size_t m_root = 0;
  BlockIterator m_index;
  BlockIterator m_block;
  Status m_status;
};

}  // namespace vtkv
