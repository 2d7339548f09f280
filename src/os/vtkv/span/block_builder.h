// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes one block out of entries that come in order, or out of plain bytes.
//
// Not thread-safe. Reused for block after block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vtkv/mem/entry.h"
#include "vtkv/span/block_format.h"

namespace vtkv {

class BlockBuilder {
 public:
  explicit BlockBuilder(BlockKind kind) : m_kind(kind) {}

  // REQUIRES: not before the last one added.
  void add(const Entry& entry);
  // For the kinds whose body is plain bytes.
  void set_body(std::string body) { m_body = std::move(body); }

  bool empty() const { return m_body.empty(); }
  uint32_t entries() const { return m_entries; }
  // Size of the block as it stands, and a bound on it with `entry` added.
  size_t bytes() const {
    return sizeof(block_header_t) + m_body.size() + (m_closed ? 0 : m_restarts.size() * sizeof(uint32_t));
  }
  size_t bytes_with(const Entry& entry) const;

  // Compresses the block, of the kind entries, if it then takes fewer units. Nothing can be added any more, before
  // finish(). Returns how many times smaller it could be made; at least 1.
  double compress();

  // Appends the finished block, padded to whole units, to `out`, and starts anew.
  void finish(uint64_t span_id, uint32_t unit, std::string* out);

 private:
  void close();

  const BlockKind m_kind;
  std::string m_body;
  std::string m_scratch;
  bool m_closed = false;  // the restarts are in the body
  bool m_compressed = false;
  std::string m_last_key;
  std::vector<uint32_t> m_restarts;
  uint32_t m_entries = 0;
};

}  // namespace vtkv
