// SPDX-License-Identifier: LGPL-2.1-or-later
// A slot whose blocks have more than one owner, or some of them none, as of a checkpoint. An entry of the tree, beside
// the allocation page, which calls the slot owned; without it all of an owned slot is one owner's.
// doc/on_disk_format.md, "B: split slot", "Key of a split slot".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"
#include "vtkv/status.h"

namespace swimstore {

inline constexpr char kSplitSlotKeyPrefix = 'B';

struct SplitSlotRecord {
  uint8_t container = 0;
  uint64_t slot = 0;
  std::vector<uint64_t> owned;  // bit i of word j: block 64 * j + i

  static std::string encode_key(unsigned container, uint64_t slot);
  static std::string encode_value(unsigned container, std::span<const uint64_t> owned);
  // Code::corruption, Code::unsupported. At least one block is owned, and none past the slot's end.
  static vtkv::Status decode(std::string_view key, std::string_view value, SplitSlotRecord* record);
};

}  // namespace swimstore
