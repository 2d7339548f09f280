// SPDX-License-Identifier: LGPL-2.1-or-later
// Which values of a segment's records may be what a pointer leads to?
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vtkv/blob/relocation.h"
#include "vtkv/wal/log_format.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class ValueCollector final : public BatchVisitor, public WriteBatch::Handler {
 public:
  // `addresses`: the offsets in the segment that pointers lead to, ascending; null when they are not known. Records
  // come in the order in which they lie, from `start` on. `values` gets views of what the records were decoded from.
  ValueCollector(const std::vector<uint64_t>* addresses, uint64_t start, std::vector<Relocation>* values)
      : m_addresses(addresses), m_values(values) {
    if (addresses) {
      m_next = std::lower_bound(addresses->begin(), addresses->end(), start);
    }
  }

  Status batch(SequenceNumber, uint32_t, std::string_view encoded, const LogAddress& address) override {
    m_start = encoded.data();
    m_address = address;
    return WriteBatch::iterate(encoded, *this);
  }
  void put(std::string_view key, std::string_view value) override {
    const uint64_t offset = m_address.offset + static_cast<uint64_t>(value.data() - m_start);
    if (!m_addresses || is_address(offset)) {
      const auto length = static_cast<uint32_t>(value.size());
      m_values->push_back({key, value, {m_address.segment_id, m_address.epoch, offset, length, 0}});
    }
  }

 private:
  bool is_address(uint64_t offset) {
    while (m_next != m_addresses->end() && *m_next < offset) {
      ++m_next;
    }
    return m_next != m_addresses->end() && *m_next == offset;
  }

  const std::vector<uint64_t>* const m_addresses;
  std::vector<uint64_t>::const_iterator m_next;
  std::vector<Relocation>* const m_values;
  const char* m_start = nullptr;
  LogAddress m_address;
};

}  // namespace vtkv
