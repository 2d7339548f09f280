// SPDX-License-Identifier: LGPL-2.1-or-later
// Allocation pages: who owns 4096 neighbouring slots of one class, as of a checkpoint. An entry of the tree.
// doc/on_disk_format.md, "A: allocation page", "Key of an allocation page". No checksum of its own: the tree's blocks
// have one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "swimstore/format/size_class.h"
#include "vtkv/status.h"

namespace swimstore {

inline constexpr char kAllocationKeyPrefix = 'A';
inline constexpr uint32_t kPageSlots = 4096;
inline constexpr uint32_t kPageWords = kPageSlots / 64;

struct AllocationPage {
  uint8_t size_class = 0;
  uint32_t number = 0;
  uint32_t slots = 0;
  std::array<uint64_t, kPageWords> owned{};
  std::array<uint64_t, kPageWords> primed{};

  uint64_t first_slot() const { return uint64_t{number} * kPageSlots; }
  std::string encode_key() const;
  std::string encode_value() const;
  // Code::corruption, Code::unsupported. Bits past `slots` must be 0.
  static vtkv::Status decode(std::string_view key, std::string_view value, AllocationPage* page);
};

}  // namespace swimstore
