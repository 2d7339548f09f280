// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/blob/value_account.h"

#include <algorithm>

namespace vtkv {

void ValueDelta::add(std::string_view key, const ValuePointer& pointer, int64_t sign) {
  Change& change = m_changes[pointer.epoch];
  change.segment_id = pointer.segment_id;
  change.entries += sign;
  change.end = std::max(change.end, sign > 0 ? pointer.offset + pointer.length : 0);
  change.bytes += sign * static_cast<int64_t>(bytes_of(key, pointer));
}

void ValueDelta::dropped(const Entry& entry) {
  ValuePointer pointer;
  if (entry.type == EntryType::value_pointer && pointer.decode(entry.value)) {
    add(entry.key, pointer, -1);
  }
}

uint64_t ValueDelta::hidden_bytes() const {
  int64_t bytes = 0;
  for (const auto& [epoch, change] : m_changes) {
    bytes += change.hidden_bytes;
  }
  return static_cast<uint64_t>(bytes);
}

void ValueDelta::apply(std::vector<SegmentValues>* segments) const {
  const auto changed = [](uint64_t before, int64_t by) {
    return by < 0 && before < static_cast<uint64_t>(-by) ? 0 : before + static_cast<uint64_t>(by);
  };
  std::map<uint64_t, size_t> numbers;  // of the segments, by epoch
  for (size_t i = 0; i < segments->size(); ++i) {
    numbers.emplace((*segments)[i].epoch, i);
  }
  for (const auto& [epoch, change] : m_changes) {
    const auto known = numbers.find(epoch);
    if (known == numbers.end() && change.entries <= 0) {
      continue;  // of a segment that was collected meanwhile
    }
    if (known == numbers.end()) {
      segments->push_back({change.segment_id, epoch, 0, 0, 0, 0});
    }
    SegmentValues* const found = known == numbers.end() ? &segments->back() : &(*segments)[known->second];
    found->entries = changed(found->entries, change.entries);
    found->bytes = changed(found->bytes, change.bytes);
    found->end = std::max(found->end, change.end);
    // What a compaction drops was hidden, mostly.
    found->hidden_bytes =
        std::min(found->bytes, changed(found->hidden_bytes, change.hidden_bytes + std::min<int64_t>(0, change.bytes)));
  }
}

}  // namespace vtkv
