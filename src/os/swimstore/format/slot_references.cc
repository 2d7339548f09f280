// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/slot_references.h"

#include <algorithm>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"

namespace swimstore {

std::string SlotReferences::encode(std::span<const uint32_t> counts) {
  std::string value;
  size_t end_before = 0;
  for (size_t first = 0; first < counts.size();) {
    size_t end = first + 1;
    while (end < counts.size() && counts[end] == counts[first]) {
      ++end;
    }
    if (counts[first] > 1) {
      if (value.empty()) {
        vtkv::put_fixed8(&value, kSlotReferencesVersion);
      }
      vtkv::put_varint32(&value, static_cast<uint32_t>(first - end_before));
      vtkv::put_varint32(&value, static_cast<uint32_t>(end - first));
      vtkv::put_varint32(&value, counts[first] - 2);
      end_before = end;
    }
    first = end;
  }
  return value;
}

bool SlotReferences::decode(std::string_view value, std::span<uint32_t> counts) {
  uint8_t version = 0;
  if (!vtkv::get_fixed8(&value, &version) || version != kSlotReferencesVersion || value.empty()) {
    return false;
  }
  uint64_t next = 0;
  while (!value.empty()) {
    uint32_t gap = 0;
    uint32_t count = 0;
    uint32_t references = 0;
    if (!vtkv::get_varint32(&value, &gap) || !vtkv::get_varint32(&value, &count) ||
        !vtkv::get_varint32(&value, &references) || count == 0 || references > UINT32_MAX - 2) {
      return false;
    }
    const uint64_t first = next + gap;
    next = first + count;
    if (next > counts.size()) {
      return false;
    }
    std::ranges::fill(counts.subspan(first, count), references + 2);
  }
  return true;
}

}  // namespace swimstore
