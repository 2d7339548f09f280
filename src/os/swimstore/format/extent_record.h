// Where the blocks of one chunk (64 KiB) of an object lie, and their checksums.
//
// Encoded (varints as in vtkv/util/coding.h):
//   u8      version, 1
//   varint  number of extents
//   per extent, in ascending order of blocks:
//     u8      first block in the chunk (low nibble), number of blocks - 1 (high nibble)
//     u8      size class of the slot (low 6 bits); bit 6: a piece of a larger slot; bit 7: shared
//     u8      split levels, only of a piece
//     varint  slot index
//     varint  first block in the slot      } absent for a slot of one block
//     varint  blocks written to the slot   }
//     u32 LE  crc32c of each block
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/container/size_class.h"

namespace swimstore {

inline constexpr uint32_t kChunkBlocks = 16;
inline constexpr uint32_t kChunkBytes = kChunkBlocks * kBlockBytes;
inline constexpr uint8_t kExtentRecordVersion = 1;

// `count` blocks of an object, starting at `block` of its chunk, lie at `slot_block` of `slot`.
struct Extent {
  uint8_t block = 0;
  uint8_t count = 0;
  bool shared = false;           // somebody else may refer to these blocks too: see slot references
  SlotAddress slot;
  uint32_t slot_block = 0;
  uint32_t slot_written_blocks = 0;  // how many blocks the write that filled the slot had

  SlotBlocks blocks() const { return {slot, slot_block, count, slot_written_blocks}; }
  bool operator==(const Extent&) const = default;
};

// Blocks that no extent covers are holes: they read as zeros.
struct ExtentChunk {
  std::vector<Extent> extents;                 // ascending, not overlapping
  std::array<uint32_t, kChunkBlocks> crc32c{};  // per block; of blocks that extents cover

  bool empty() const { return extents.empty(); }
  const Extent* find(uint32_t block) const;  // the extent that covers the block, or nullptr
};

void encode_extent_chunk(const ExtentChunk& chunk, std::string* out);
// False on malformed bytes: every count, class and overlap is checked.
bool decode_extent_chunk(std::string_view bytes, ExtentChunk* chunk);

}  // namespace swimstore
