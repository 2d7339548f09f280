// SPDX-License-Identifier: LGPL-2.1-or-later
// A block in memory, checked against its checksum, and the iterator over its entries.
//
// A Block is immutable and shared between threads. Its bytes may come from a hostile disk: every length
// in them is checked before use.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vtkv/mem/entry.h"
#include "vtkv/span/block_format.h"
#include "vtkv/util/read_cache.h"

namespace vtkv {

class Block final : public Cached {
 public:
  // Where the block was read from: what its header has to say.
  struct Identity {
    BlockKind kind = BlockKind::entries;
    uint64_t span_id = 0;
    uint32_t unit = 0;
  };

  // Code::corruption says what is wrong, but not where: the caller knows. `bytes` is padded to units.
  static Status parse(std::string_view bytes, const Identity& identity, std::shared_ptr<const Block>* block);

  std::string_view body() const { return {m_body.get(), m_body_bytes}; }
  uint32_t entries() const { return m_entries; }
  uint32_t restarts() const { return m_restarts; }
  uint32_t restart_offset(uint32_t index) const;  // REQUIRES: index < restarts()
  size_t entries_bytes() const { return m_body_bytes - m_restarts * sizeof(uint32_t); }
  size_t memory_bytes() const override { return sizeof(*this) + m_body_bytes; }

 private:
  std::unique_ptr<char[]> m_body;
  uint32_t m_body_bytes = 0;
  uint32_t m_entries = 0;
  uint32_t m_restarts = 0;
};

// Not thread-safe. Keys stay valid until the next move, values as long as the block.
class BlockIterator final : public EntryIterator {
 public:
  BlockIterator() = default;
  explicit BlockIterator(std::shared_ptr<const Block> block) { reset(std::move(block)); }

  void reset(std::shared_ptr<const Block> block);  // null: nothing to iterate
  bool valid() const override { return m_valid; }
  void seek_to_first() override;
  void seek_to_last() override;
  void seek(std::string_view key, SequenceNumber at_most) override;
  // The last entry at or before (key, at_most); the first one when all are behind it. For an index.
  void seek_for_previous(std::string_view key, SequenceNumber at_most);
  void next() override;
  void previous() override;
  const Entry& entry() const override { return m_entry; }
  Status status() const override { return m_status; }

 private:
  void go_to_restart(uint32_t index);
  bool decode_at(size_t offset);
  void fail(const char* what);
  // The last restart whose entry is before (key, at_most), or the first.
  uint32_t restart_before(std::string_view key, SequenceNumber at_most);

  std::shared_ptr<const Block> m_block;
  bool m_valid = false;
  size_t m_offset = 0;       // of the current entry
  size_t m_next_offset = 0;  // of the one behind it
  std::string m_key;
  Entry m_entry;
  Status m_status;
};

// Does (key, sequence) come before (other_key, other_sequence) in the order of entries?
inline bool entry_before(std::string_view key, SequenceNumber sequence, std::string_view other_key,
                         SequenceNumber other_sequence) {
  const int order = key.compare(other_key);
  return order < 0 || (order == 0 && sequence > other_sequence);
}

}  // namespace vtkv
