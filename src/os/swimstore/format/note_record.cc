// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/note_record.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::get_signed;
using vtkv::put_signed;

using vtkv::Status;

namespace {

void put_slots(std::string* to, const std::vector<SlotBlocks>& slots) {
  vtkv::put_varint64(to, slots.size());
  uint64_t before = 0;
  for (const SlotBlocks& blocks : slots) {
    vtkv::put_fixed8(to, static_cast<uint8_t>(blocks.slot.size_class | blocks.slot.split_levels << 4));
    put_signed(to, static_cast<int64_t>(blocks.slot.index - before));
    before = blocks.slot.index;
    if (blocks.slot.size_class == 0) {
      continue;
    }
    const bool in_part = blocks.count != blocks.written;
    vtkv::put_varint32(to, blocks.written << 1 | static_cast<uint32_t>(in_part));
    if (in_part) {
      vtkv::put_varint32(to, blocks.first);
      vtkv::put_varint32(to, blocks.count);
    }
  }
}

bool get_blocks(std::string_view* cursor, SlotBlocks* blocks) {
  if (blocks->slot.size_class == 0) {
    *blocks = SlotBlocks::all(blocks->slot);
    return true;
  }
  uint32_t written = 0;
  if (!vtkv::get_varint32(cursor, &written)) {
    return false;
  }
  *blocks = SlotBlocks::all(blocks->slot, written >> 1);
  return (written & 1) == 0 ||
         (vtkv::get_varint32(cursor, &blocks->first) && vtkv::get_varint32(cursor, &blocks->count));
}

bool get_slots(std::string_view* cursor, std::vector<SlotBlocks>* slots) {
  uint64_t count = 0;
  if (!vtkv::get_varint64(cursor, &count) || count > cursor->size() / 2) {
    return false;  // a slot takes two bytes at least
  }
  slots->reserve(count);
  uint64_t before = 0;
  for (uint64_t i = 0; i < count; i++) {
    SlotBlocks blocks;
    uint8_t kind = 0;
    int64_t difference = 0;
    if (!vtkv::get_fixed8(cursor, &kind) || !get_signed(cursor, &difference)) {
      return false;
    }
    before += static_cast<uint64_t>(difference);
    blocks.slot = {static_cast<uint8_t>(kind & 0xf), before, static_cast<uint8_t>(kind >> 4)};
    if (!blocks.slot.is_valid() || !get_blocks(cursor, &blocks) || !blocks.is_valid()) {
      return false;
    }
    slots->push_back(blocks);
  }
  return true;
}

bool get_pools(std::string_view* cursor, bool with_compressed, std::map<int64_t, PoolUsage>* pools) {
  uint64_t count = 0;
  if (!vtkv::get_varint64(cursor, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    int64_t id = 0;
    PoolUsage usage;
    if (!get_signed(cursor, &id) || !usage.decode(cursor, with_compressed) || !pools->emplace(id, usage).second) {
      return false;
    }
  }
  return true;
}

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

// Wraps instead of overflowing: the terms may come from a hostile disk.
PoolUsage& PoolUsage::operator+=(const PoolUsage& other) {
  for (const auto sum : kSums) {
    this->*sum = wrapping_add(this->*sum, other.*sum);
  }
  return *this;
}

void PoolUsage::encode(bool with_compressed, std::string* to) const {
  for (const auto sum : std::span(kSums).first(with_compressed ? std::size(kSums) : kSumsWithoutCompressed)) {
    put_signed(to, this->*sum);
  }
}

bool PoolUsage::decode(std::string_view* cursor, bool with_compressed) {
  for (const auto sum : std::span(kSums).first(with_compressed ? std::size(kSums) : kSumsWithoutCompressed)) {
    if (!get_signed(cursor, &(this->*sum))) {
      return false;
    }
  }
  return true;
}

std::string CubeDelta::encode() const {
  const bool with_compressed =
      std::any_of(pools.begin(), pools.end(), [](const auto& pool) { return pool.second.has_compressed(); });
  std::string bytes;
  bytes.reserve(16 + 6 * (allocation.allocated.size() + allocation.freed.size()) + 24 * pools.size());
  vtkv::put_fixed8(&bytes, with_compressed ? kNoteVersion : kNoteVersionOldest);
  vtkv::put_varint64(&bytes, next_object_id);
  put_slots(&bytes, allocation.allocated);
  put_slots(&bytes, allocation.freed);
  vtkv::put_varint64(&bytes, pools.size());
  for (const auto& [id, usage] : pools) {
    put_signed(&bytes, id);
    usage.encode(with_compressed, &bytes);
  }
  return bytes;
}

Status CubeDelta::decode(std::string_view bytes, CubeDelta* delta) {
  *delta = CubeDelta{};
  uint8_t version = 0;
  if (!vtkv::get_fixed8(&bytes, &version)) {
    return Status::corruption("a note in the log is empty");
  }
  VTKV_RETURN_IF_ERROR(check_version("a note in the log", version, kNoteVersion, kNoteVersionOldest));
  if (!vtkv::get_varint64(&bytes, &delta->next_object_id) || !get_slots(&bytes, &delta->allocation.allocated) ||
      !get_slots(&bytes, &delta->allocation.freed) || !get_pools(&bytes, version == kNoteVersion, &delta->pools) ||
      !bytes.empty() || delta->next_object_id > kObjectIdMax) {
    *delta = CubeDelta{};
    return Status::corruption("a note in the log is malformed");
  }
  return {};
}

}  // namespace swimstore
