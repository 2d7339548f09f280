// SPDX-License-Identifier: LGPL-2.1-or-later
// Allocation pages: who owns 4096 neighbouring slots of one class, as of a checkpoint. An entry of the tree.
//
// Key:   OFFSET SIZE FIELD
//        0      1    'A'
//        1      1    size class
//        2      4    page number, big-endian: the page's first slot is 4096 times this
// Value: 0      1    version (1)
//        1      1    0
//        2      2    number of slots in the page, 1 to 4096
//        4      8*w  owned, bit i of word j: slot 64 * j + i; w = slots / 64 rounded up
//        4+8*w  8*w  primed, the same way
// No checksum of its own: the tree's blocks have one.
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
