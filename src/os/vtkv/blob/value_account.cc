// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/blob/value_account.h"

#include <algorithm>

namespace vtkv {

void ValueDelta::add(const ValuePointer& pointer, int64_t sign) {
  Change& change = m_changes[pointer.epoch];
  change.segment_id = pointer.segment_id;
  change.entries += sign;
  change.end = std::max(change.end, sign > 0 ? pointer.offset + pointer.length : 0);
  change.bytes += sign * static_cast<int64_t>(pointer.length);
}

void ValueDelta::dropped(const Entry& entry) {
  ValuePointer pointer;
  if (entry.type == EntryType::value_pointer && pointer.decode(entry.value)) {
    add(pointer, -1);
  }
}

void ValueDelta::apply(std::vector<SegmentValues>* segments) const {
  const auto changed = [](uint64_t before, int64_t by) {
    return by < 0 && before < static_cast<uint64_t>(-by) ? 0 : before + static_cast<uint64_t>(by);
  };
  for (const auto& [epoch, change] : m_changes) {
    auto found = std::find_if(segments->begin(), segments->end(),
                              [&, wanted = epoch](const SegmentValues& values) { return values.epoch == wanted; });
    if (found == segments->end()) {
      if (change.entries <= 0) {
        continue;  // of a segment that was collected meanwhile
      }
      found = segments->insert(segments->end(), {change.segment_id, epoch, 0, 0, 0, 0});
    }
    found->entries = changed(found->entries, change.entries);
    found->bytes = changed(found->bytes, change.bytes);
    found->end = std::max(found->end, change.end);
    // What a compaction drops was hidden, mostly.
    found->hidden_bytes =
        std::min(found->bytes, changed(found->hidden_bytes, change.hidden_bytes + std::min<int64_t>(0, change.bytes)));
  }
}

}  // namespace vtkv
