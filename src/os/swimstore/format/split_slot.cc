// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/split_slot.h"

#include <algorithm>
#include <cstring>

#include "swimstore/format/format_version.h"
#include "vtkv/util/coding.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr size_t kKeyBytes = 10;

size_t owned_bytes(unsigned container) { return (slot_blocks(container) + 7) / 8; }

Status malformed(std::string_view what) {
  return Status::corruption("a split slot's entry in the tree is malformed: " + std::string(what));
}

}  // namespace

std::string SplitSlotRecord::encode_key(unsigned container, uint64_t slot) {
  std::string key(1, kSplitSlotKeyPrefix);
  vtkv::put_fixed8(&key, static_cast<uint8_t>(container));
  vtkv::put_ordered64(&key, slot);
  return key;
}

std::string SplitSlotRecord::encode_value(unsigned container, std::span<const uint64_t> owned) {
  const size_t bytes = owned_bytes(container);
  std::string value(1 + bytes, static_cast<char>(kSplitSlotVersion));
  std::memcpy(&value[1], owned.data(), bytes);
  return value;
}

Status SplitSlotRecord::decode(std::string_view key, std::string_view value, SplitSlotRecord* record) {
  *record = SplitSlotRecord{};
  if (key.size() != kKeyBytes || key[0] != kSplitSlotKeyPrefix) {
    return malformed("its key");
  }
  key.remove_prefix(1);
  vtkv::get_fixed8(&key, &record->container);
  vtkv::get_ordered64(&key, &record->slot);
  if (record->container == 0 || record->container >= kSizeClasses || record->slot >> 56 != 0) {
    return malformed("it names no slot of more than one block");
  }
  uint8_t version = 0;
  if (!vtkv::get_fixed8(&value, &version)) {
    return malformed("it is empty");
  }
  VTKV_RETURN_IF_ERROR(check_version("a split slot's entry in the tree", version, kSplitSlotVersion));
  const uint32_t blocks = slot_blocks(record->container);
  if (value.size() != owned_bytes(record->container)) {
    return malformed("its length");
  }
  record->owned.resize((blocks + 63) / 64);
  std::memcpy(record->owned.data(), value.data(), value.size());
  if (blocks < 64 && record->owned[0] >> blocks != 0) {
    return malformed("a block past the slot's end");
  }
  if (std::all_of(record->owned.begin(), record->owned.end(), [](uint64_t word) { return word == 0; })) {
    return malformed("no block is owned");
  }
  return {};
}

}  // namespace swimstore
