// SPDX-License-Identifier: LGPL-2.1-or-later
// An extent shard: where the blocks of 64 KiB of an object's data lie, and their checksums.
// doc/on_disk_format.md, "E: extent shard", "Extent", "Compressed blob".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"

namespace swimstore {

inline constexpr uint32_t kShardBlocks = 16;
inline constexpr uint32_t kShardBytes = kShardBlocks * kBlockBytes;
// Of compression: snappy, zlib, zstd, lz4, as Ceph's Compressor counts them.
inline constexpr uint8_t kAlgorithmMax = 4;
inline constexpr uint8_t kExtentRecordVersion = 2;  // 1: of a shard without compressed blobs

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

// Extents and blobs of one place in an object can be those of the other, too.
constexpr bool is_same_in_shard(uint64_t offset, uint64_t other) { return offset % kShardBytes == other % kShardBytes; }

// Neighbouring blocks of a shard that were compressed together, into fewer blocks: the stored ones. Extents say where
// these lie, as they do of an object's blocks. All of them are referred to as long as one block of the object lives in
// the blob.
struct CompressedBlob {
  uint8_t block = 0;       // of the shard: the first that was compressed
  uint8_t count = 0;       // blocks that were compressed
  uint16_t live = 0;       // bit i: block i of the shard is read from here; the others were written anew, or cut off
  uint8_t algorithm = 0;   // as Ceph's Compressor numbers them
  std::optional<int32_t> message;  // that the compressor wants back
  uint32_t bytes = 0;      // of the compressed form; zeros follow it in its last block
  std::vector<Extent> extents;   // of stored blocks, from 0 on, without a hole
  std::vector<uint32_t> crc32c;  // per stored block

  // Calls visit(first, count) for each run of live blocks of the shard.
  template <typename Visit>
  static void for_each_run(uint16_t live, const Visit& visit) {
    for (uint32_t left = live; left != 0;) {
      const uint32_t first = std::countr_zero(left);
      const uint32_t count = std::countr_one(left >> first);
      visit(first, count);
      left &= left + (uint32_t{1} << first);
    }
  }

  uint32_t stored_blocks() const { return static_cast<uint32_t>(crc32c.size()); }
  uint32_t live_blocks() const { return std::popcount(live); }
  // It takes no fewer blocks than live in it.
  bool is_worn() const { return live_blocks() <= stored_blocks(); }
  bool is_shared() const {
    return std::any_of(extents.begin(), extents.end(), [](const Extent& extent) { return extent.shared; });
  }
  // All of it. False: it was.
  bool share() {
    const bool was = std::all_of(extents.begin(), extents.end(), [](const Extent& extent) { return extent.shared; });
    for (Extent& extent : extents) {
      extent.shared = true;
    }
    return !was;
  }
  // Whatever lives in them, and wherever they lie.
  bool has_data_of(const CompressedBlob& other) const {
    return block == other.block && count == other.count && algorithm == other.algorithm && message == other.message &&
           bytes == other.bytes && crc32c == other.crc32c;
  }
  bool operator==(const CompressedBlob&) const = default;
};

// Blocks [first, last) of a shard, as bits.
constexpr uint16_t block_bits(uint32_t first, uint32_t last) {
  return static_cast<uint16_t>((uint32_t{1} << last) - (uint32_t{1} << first));
}

// Blocks that lie in neither an extent nor a blob are holes: they read as zeros.
struct ExtentShard {
  std::vector<Extent> extents;                 // ascending, not overlapping
  std::array<uint32_t, kShardBlocks> crc32c{};  // per block; of blocks that extents cover
  std::vector<CompressedBlob> blobs;  // ascending by their first live block; each block lives in one at most

  bool empty() const { return extents.empty() && blobs.empty(); }
  bool is_mapped(uint32_t block) const { return find(block) != nullptr || find_blob(block) != nullptr; }
  const Extent* find(uint32_t block) const;  // the extent that covers the block, or nullptr
  const CompressedBlob* find_blob(uint32_t block) const;  // that the block lives in, or nullptr
  // Calls visit(extent) for all, those of blobs last.
  template <typename Self, typename Visit>
  static void for_each_extent(Self& shard, const Visit& visit) {
    for (auto& extent : shard.extents) {
      visit(extent);
    }
    for (auto& blob : shard.blobs) {
      for (auto& extent : blob.extents) {
        visit(extent);
      }
    }
  }
  bool operator==(const ExtentShard&) const = default;
};

void encode_extent_shard(const ExtentShard& shard, std::string* out);
// False on malformed bytes: every count, class and overlap is checked.
bool decode_extent_shard(std::string_view bytes, ExtentShard* shard);

}  // namespace swimstore
