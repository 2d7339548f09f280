// SPDX-License-Identifier: LGPL-2.1-or-later
// An extent shard: where the blocks of 64 KiB of an object's data lie, and their checksums.
// doc/on_disk_format.md, "E: extent shard", "Extent".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"

namespace swimstore {

inline constexpr uint32_t kShardBlocks = 16;
inline constexpr uint32_t kShardBytes = kShardBlocks * kBlockBytes;
inline constexpr uint8_t kExtentRecordVersion = 1;

// `count` blocks of an object, starting at `block` of its shard, lie at `slot_block` of `slot`.
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
struct ExtentShard {
  std::vector<Extent> extents;                 // ascending, not overlapping
  std::array<uint32_t, kShardBlocks> crc32c{};  // per block; of blocks that extents cover

  bool empty() const { return extents.empty(); }
  const Extent* find(uint32_t block) const;  // the extent that covers the block, or nullptr
};

void encode_extent_shard(const ExtentShard& shard, std::string* out);
// False on malformed bytes: every count, class and overlap is checked.
bool decode_extent_shard(std::string_view bytes, ExtentShard* shard);

}  // namespace swimstore
