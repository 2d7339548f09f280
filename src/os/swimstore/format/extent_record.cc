// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/extent_record.h"

#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr uint8_t kSharedBit = 0x80;
constexpr uint8_t kSplitBit = 0x40;
constexpr uint8_t kMessageBit = 0x80;  // of a blob's algorithm
constexpr uint8_t kWithoutBlobs = 1;  // version

static_assert(kShardBlocks == 16, "positions are four bits, live blocks sixteen");

bool take_byte(std::string_view* cursor, uint8_t* value) {
  if (cursor->empty()) {
    return false;
  }
  *value = static_cast<uint8_t>(cursor->front());
  cursor->remove_prefix(1);
  return true;
}

bool decode_extent(std::string_view* cursor, Extent* extent) {
  uint8_t position = 0;
  uint8_t kind = 0;
  extent->slot.split_levels = 0;
  if (!take_byte(cursor, &position) || !take_byte(cursor, &kind) ||
      ((kind & kSplitBit) && (!take_byte(cursor, &extent->slot.split_levels) || extent->slot.split_levels == 0)) ||
      !vtkv::get_varint64(cursor, &extent->slot.index)) {
    return false;
  }
  extent->block = position & 0x0f;
  extent->count = (position >> 4) + 1;
  extent->shared = kind & kSharedBit;
  extent->slot.size_class = kind & ~(kSharedBit | kSplitBit);
  if (!extent->slot.is_valid() || extent->block + extent->count > static_cast<int>(kShardBlocks)) {
    return false;
  }
  extent->slot_block = 0;
  extent->slot_written_blocks = 1;
  if (extent->slot.size_class > 0 &&
      (!vtkv::get_varint32(cursor, &extent->slot_block) || !vtkv::get_varint32(cursor, &extent->slot_written_blocks))) {
    return false;
  }
  return extent->slot_written_blocks <= slot_blocks(extent->slot.size_class) &&
         extent->slot_block < extent->slot_written_blocks &&
         extent->count <= extent->slot_written_blocks - extent->slot_block;
}

void encode_extents(const std::vector<Extent>& extents, const uint32_t* crc32c, std::string* out) {
  vtkv::put_varint32(out, static_cast<uint32_t>(extents.size()));
  for (const Extent& extent : extents) {
    out->push_back(static_cast<char>(extent.block | (extent.count - 1) << 4));
    const bool split = extent.slot.split_levels > 0;
    const int flags = (extent.shared ? kSharedBit : 0) | (split ? kSplitBit : 0);
    out->push_back(static_cast<char>(extent.slot.size_class | flags));
    if (split) {
      out->push_back(static_cast<char>(extent.slot.split_levels));
    }
    vtkv::put_varint64(out, extent.slot.index);
    if (extent.slot.size_class > 0) {
      vtkv::put_varint32(out, extent.slot_block);
      vtkv::put_varint32(out, extent.slot_written_blocks);
    }
    for (unsigned i = 0; i < extent.count; ++i) {
      vtkv::put_fixed32(out, crc32c[extent.block + i]);
    }
  }
}

// *crc32c: kShardBlocks of them.
bool decode_extents(std::string_view* bytes, std::vector<Extent>* extents, uint32_t* crc32c) {
  uint32_t count = 0;
  if (!vtkv::get_varint32(bytes, &count) || count > kShardBlocks) {
    return false;
  }
  unsigned next = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Extent extent;
    if (!decode_extent(bytes, &extent) || extent.block < next) {
      return false;
    }
    for (unsigned block = extent.block; block < unsigned{extent.block} + extent.count; ++block) {
      if (!vtkv::get_fixed32(bytes, &crc32c[block])) {
        return false;
      }
    }
    next = extent.block + extent.count;
    extents->push_back(extent);
  }
  return true;
}

void encode_blob(const CompressedBlob& blob, std::string* out) {
  out->push_back(static_cast<char>(blob.block | (blob.count - 1) << 4));
  out->push_back(static_cast<char>(blob.algorithm | (blob.message ? kMessageBit : 0)));
  vtkv::put_fixed16(out, blob.live);
  vtkv::put_varint32(out, blob.bytes);
  if (blob.message) {
    vtkv::put_fixed32(out, static_cast<uint32_t>(*blob.message));
  }
  encode_extents(blob.extents, blob.crc32c.data(), out);
}

bool decode_blob(std::string_view* cursor, CompressedBlob* blob) {
  uint8_t position = 0;
  uint32_t message = 0;
  std::array<uint32_t, kShardBlocks> crc32c{};
  if (!take_byte(cursor, &position) || !take_byte(cursor, &blob->algorithm) ||
      !vtkv::get_fixed16(cursor, &blob->live) || !vtkv::get_varint32(cursor, &blob->bytes) ||
      ((blob->algorithm & kMessageBit) && !vtkv::get_fixed32(cursor, &message)) ||
      !decode_extents(cursor, &blob->extents, crc32c.data())) {
    return false;
  }
  if (blob->algorithm & kMessageBit) {
    blob->message = static_cast<int32_t>(message);
    blob->algorithm &= ~kMessageBit;
  }
  blob->block = position & 0x0f;
  blob->count = (position >> 4) + 1;
  uint32_t stored = 0;
  for (const Extent& extent : blob->extents) {
    if (extent.block != stored) {
      return false;
    }
    stored += extent.count;
  }
  blob->crc32c.assign(crc32c.begin(), crc32c.begin() + stored);
  const uint32_t end = uint32_t{blob->block} + blob->count;
  return end <= kShardBlocks && stored < blob->count && blob->bytes > 0 && blob->algorithm > 0 &&
         blob->algorithm <= kAlgorithmMax && blocks_for(blob->bytes) == stored && blob->live != 0 &&
         (blob->live & ~block_bits(blob->block, end)) == 0;
}

bool decode_blobs(std::string_view* bytes, ExtentShard* shard) {
  uint32_t count = 0;
  if (!vtkv::get_varint32(bytes, &count) || count == 0 || count > kShardBlocks) {
    return false;
  }
  uint32_t mapped = 0;
  for (const Extent& extent : shard->extents) {
    mapped |= block_bits(extent.block, extent.block + extent.count);
  }
  int last = -1;  // first live block of the blob before
  for (uint32_t i = 0; i < count; ++i) {
    CompressedBlob blob;
    if (!decode_blob(bytes, &blob) || (blob.live & mapped) != 0 || std::countr_zero(blob.live) <= last) {
      return false;
    }
    mapped |= blob.live;
    last = std::countr_zero(blob.live);
    shard->blobs.push_back(std::move(blob));
  }
  return true;
}

}  // namespace

const Extent* ExtentShard::find(uint32_t block) const {
  for (const Extent& extent : extents) {
    if (block >= extent.block && block < uint32_t{extent.block} + extent.count) {
      return &extent;
    }
  }
  return nullptr;
}

const CompressedBlob* ExtentShard::find_blob(uint32_t block) const {
  for (const CompressedBlob& blob : blobs) {
    if (blob.live >> block & 1) {
      return &blob;
    }
  }
  return nullptr;
}

void encode_extent_shard(const ExtentShard& shard, std::string* out) {
  out->push_back(static_cast<char>(shard.blobs.empty() ? kWithoutBlobs : kExtentRecordVersion));
  encode_extents(shard.extents, shard.crc32c.data(), out);
  if (!shard.blobs.empty()) {
    vtkv::put_varint32(out, static_cast<uint32_t>(shard.blobs.size()));
    for (const CompressedBlob& blob : shard.blobs) {
      encode_blob(blob, out);
    }
  }
}

bool decode_extent_shard(std::string_view bytes, ExtentShard* shard) {
  *shard = {};
  uint8_t version = 0;
  if (!take_byte(&bytes, &version) || (version != kWithoutBlobs && version != kExtentRecordVersion) ||
      !decode_extents(&bytes, &shard->extents, shard->crc32c.data())) {
    return false;
  }
  return (version == kWithoutBlobs || decode_blobs(&bytes, shard)) && bytes.empty();
}

}  // namespace swimstore
