// SPDX-License-Identifier: LGPL-2.1-or-later
// Slot sizes: 4 KiB · 2^k up to 4 MiB; the address of one slot, and of blocks in it.
#pragma once

#include <compare>
#include <cstdint>

namespace swimstore {

inline constexpr uint32_t kBlockBytes = 4096;  // unit of checksums and of direct I/O
inline constexpr unsigned kSizeClasses = 11;   // 4K 8K 16K 32K 64K 128K 256K 512K 1M 2M 4M

constexpr uint64_t blocks_for(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }
constexpr uint32_t slot_bytes(unsigned size_class) { return kBlockBytes << size_class; }
constexpr uint32_t slot_blocks(unsigned size_class) { return 1u << size_class; }
inline constexpr uint32_t kSlotBytesMax = slot_bytes(kSizeClasses - 1);

// Names one slot of a cube: a whole slot of the container of its class, or a fragment of a larger slot that was split
// (container/split_slots.h). Fragments are what halving gives: 2^k blocks, at a multiple of their size.
struct SlotAddress {
  uint8_t size_class = 0;
  uint64_t index = 0;        // counts slots of this size from the start of the container's file
  uint8_t split_levels = 0;  // how often a slot of the container was halved to make it; 0: whole

  // The class whose container holds it.
  unsigned container() const { return unsigned{size_class} + split_levels; }
  bool is_valid() const { return container() < kSizeClasses && index >> 56 == 0; }
  uint64_t byte_offset() const { return index * slot_bytes(size_class); }
  // The slot of the container that it is, or is a fragment of, and where in that it begins.
  SlotAddress whole() const { return {static_cast<uint8_t>(container()), index >> split_levels, 0}; }
  uint32_t first_block() const {
    return static_cast<uint32_t>(index & ((uint64_t{1} << split_levels) - 1)) << size_class;
  }

  // One integer for maps and keys: class and levels in the top byte. REQUIRES: is_valid().
  uint64_t packed() const { return uint64_t{split_levels} << 60 | uint64_t{size_class} << 56 | index; }
  static SlotAddress unpack(uint64_t packed) {
    return {static_cast<uint8_t>(packed >> 56 & 0xf), packed & ((uint64_t{1} << 56) - 1),
            static_cast<uint8_t>(packed >> 60)};
  }
  auto operator<=>(const SlotAddress&) const = default;
};

// Blocks [first, first + count) of a slot to which `written` blocks were written, from its start, when it was filled.
struct SlotBlocks {
  SlotAddress slot;
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t written = 0;

  static SlotBlocks all(SlotAddress slot, uint32_t written) { return {slot, 0, written, written}; }
  static SlotBlocks all(SlotAddress slot) { return all(slot, slot_blocks(slot.size_class)); }
  bool is_valid() const {
    return slot.is_valid() && count > 0 && written <= slot_blocks(slot.size_class) && first < written &&
           count <= written - first;
  }
  // In the whole slot.
  uint32_t first_block() const { return slot.first_block() + first; }
  auto operator<=>(const SlotBlocks&) const = default;
};

}  // namespace swimstore
