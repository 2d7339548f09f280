// Slot sizes: 4 KiB · 2^k up to 4 MiB, and the address of one slot.
#pragma once

#include <compare>
#include <cstdint>

namespace swimstore {

inline constexpr uint32_t kBlockBytes = 4096;  // unit of checksums and of direct I/O
inline constexpr unsigned kSizeClasses = 11;   // 4K 8K 16K 32K 64K 128K 256K 512K 1M 2M 4M

constexpr uint32_t slot_bytes(unsigned size_class) { return kBlockBytes << size_class; }
constexpr uint32_t slot_blocks(unsigned size_class) { return 1u << size_class; }
inline constexpr uint32_t kSlotBytesMax = slot_bytes(kSizeClasses - 1);

// Names one slot of a cube. `index` counts slots from the start of the class's container.
struct SlotAddress {
  uint8_t size_class = 0;
  uint64_t index = 0;

  uint64_t byte_offset() const { return index * slot_bytes(size_class); }
  // One integer for maps and keys: class in the top byte. index < 2^56 always.
  uint64_t packed() const { return uint64_t{size_class} << 56 | index; }
  static SlotAddress unpack(uint64_t packed) {
    return {static_cast<uint8_t>(packed >> 56), packed & ((uint64_t{1} << 56) - 1)};
  }
  auto operator<=>(const SlotAddress&) const = default;
};

}  // namespace swimstore
