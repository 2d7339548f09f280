// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/best_fit.h"

#include <bit>

namespace swimstore {

unsigned class_for(uint64_t bytes) {
  const uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  return static_cast<unsigned>(std::bit_width(blocks - 1));
}

void best_fit(uint64_t bytes, std::vector<WriteSlice>* slices) {
  uint64_t left = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  while (left >= kSlotBytesMax) {
    slices->push_back({kSizeClasses - 1, kSlotBytesMax});
    left -= kSlotBytesMax;
  }
  if (left == 0) {
    return;
  }
  const unsigned whole = class_for(left);
  const uint64_t waste = slot_bytes(whole) - left;
  if (waste * 4 <= slot_bytes(whole)) {
    slices->push_back({whole, static_cast<uint32_t>(left)});
    return;
  }
  const uint64_t half = slot_bytes(whole - 1);
  slices->push_back({whole - 1, static_cast<uint32_t>(half)});
  slices->push_back({class_for(left - half), static_cast<uint32_t>(left - half)});
}

uint64_t most_slot_bytes(uint64_t bytes) {
  uint64_t most = bytes / kSlotBytesMax * kSlotBytesMax;
  std::vector<WriteSlice> slices;
  best_fit(bytes - most, &slices);
  for (const WriteSlice& slice : slices) {
    most += slot_bytes(slice.size_class);
  }
  return most;
}

}  // namespace swimstore
