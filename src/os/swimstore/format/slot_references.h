// SPDX-License-Identifier: LGPL-2.1-or-later
// Which blocks of a slot are referred to more than once. An entry of the tree for each group of 64 blocks,
// key_codec.h's 'S'; a group that has none has no block with more than one reference. Groups bound what a transaction
// writes that ends one of many references.
// doc/on_disk_format.md, "S: slot references", "Run of references".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swimstore {

inline constexpr uint32_t kReferenceGroupBlocks = 64;

class SlotReferences {
 public:
  // Of one block each, of a group or of a slot.
  using Counts = std::vector<uint32_t>;

  // Of `counts`, those above 1; "" when there are none, and no entry is due.
  static std::string encode(std::span<const uint32_t> counts);
  // Sets those of `counts`, which has an element for each block that may be named, of which `value` speaks. False on
  // malformed bytes; `counts` is then unspecified.
  static bool decode(std::string_view value, std::span<uint32_t> counts);
};

}  // namespace swimstore
