// Which values of a segment's records may be what a pointer leads to?
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vtkv/vlog/relocation.h"
#include "vtkv/vlog/vlog_format.h"
#include "vtkv/write_batch.h"

namespace vtkv {

class ValueCollector final : public BatchVisitor, public WriteBatch::Handler {
 public:
  // `places`: the offsets in the segment that pointers lead to, ascending; null when they are not known. Records come
  // in the order in which they lie, from `start` on. `values` gets views of what the records were decoded from.
  ValueCollector(const std::vector<uint64_t>* places, uint64_t start, std::vector<Relocation>* values)
      : m_places(places), m_values(values) {
    if (places) {
      m_next = std::lower_bound(places->begin(), places->end(), start);
    }
  }

  Status batch(SequenceNumber, uint32_t, std::string_view encoded, const LogPlace& place) override {
    m_start = encoded.data();
    m_place = place;
    return WriteBatch::iterate(encoded, *this);
  }
  void put(std::string_view key, std::string_view value) override {
    const uint64_t offset = m_place.offset + static_cast<uint64_t>(value.data() - m_start);
    if (!m_places || is_place(offset)) {
      const auto length = static_cast<uint32_t>(value.size());
      m_values->push_back({key, value, {m_place.segment_id, m_place.epoch, offset, length, 0}});
    }
  }
  void remove(std::string_view) override {}
  void remove_range(std::string_view, std::string_view) override {}
  void external_write(const ExternalWrite&) override {}
  void note(std::string_view) override {}

 private:
  bool is_place(uint64_t offset) {
    while (m_next != m_places->end() && *m_next < offset) {
      ++m_next;
    }
    return m_next != m_places->end() && *m_next == offset;
  }

  const std::vector<uint64_t>* const m_places;
  std::vector<uint64_t>::const_iterator m_next;
  std::vector<Relocation>* const m_values;
  const char* m_start = nullptr;
  LogPlace m_place;
};

}  // namespace vtkv
