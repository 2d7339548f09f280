// SPDX-License-Identifier: LGPL-2.1-or-later
// How a write is cut into slots.
#pragma once

#include <cstdint>
#include <vector>

#include "swimstore/format/size_class.h"

namespace swimstore {

struct WriteSlice {
  unsigned size_class = 0;
  uint32_t bytes = 0;  // multiple of kBlockBytes, at most the slot's size
  bool operator==(const WriteSlice&) const = default;
};

// The smallest class whose slot holds `bytes`. REQUIRES: 0 < bytes <= kSlotBytesMax.
unsigned class_for(uint64_t bytes);

// Appends the slices of `bytes`, rounded up to blocks: largest slots first; then the smallest slot that
// holds the rest, or, when more than a quarter of that would be wasted, a slot of half its size and the
// smallest one that holds what remains (together they waste at most a sixth).
void best_fit(uint64_t bytes, std::vector<WriteSlice>* slices);

// The slots of these slices are so large in all. However a full container set cuts the write, it takes no more.
uint64_t most_slot_bytes(uint64_t bytes);

}  // namespace swimstore
