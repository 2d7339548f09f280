// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/extent_record.h"

#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr uint8_t kSharedBit = 0x80;
constexpr uint8_t kSplitBit = 0x40;

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

}  // namespace

const Extent* ExtentShard::find(uint32_t block) const {
  for (const Extent& extent : extents) {
    if (block >= extent.block && block < uint32_t{extent.block} + extent.count) {
      return &extent;
    }
  }
  return nullptr;
}

void encode_extent_shard(const ExtentShard& shard, std::string* out) {
  out->push_back(static_cast<char>(kExtentRecordVersion));
  vtkv::put_varint32(out, static_cast<uint32_t>(shard.extents.size()));
  for (const Extent& extent : shard.extents) {
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
      vtkv::put_fixed32(out, shard.crc32c[extent.block + i]);
    }
  }
}

bool decode_extent_shard(std::string_view bytes, ExtentShard* shard) {
  shard->extents.clear();
  shard->crc32c.fill(0);
  uint8_t version = 0;
  uint32_t count = 0;
  if (!take_byte(&bytes, &version) || version != kExtentRecordVersion || !vtkv::get_varint32(&bytes, &count) ||
      count > kShardBlocks) {
    return false;
  }
  unsigned next = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Extent extent;
    if (!decode_extent(&bytes, &extent) || extent.block < next) {
      return false;
    }
    for (unsigned block = extent.block; block < unsigned{extent.block} + extent.count; ++block) {
      if (!vtkv::get_fixed32(&bytes, &shard->crc32c[block])) {
        return false;
      }
    }
    next = extent.block + extent.count;
    shard->extents.push_back(extent);
  }
  return bytes.empty();
}

}  // namespace swimstore
