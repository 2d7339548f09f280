// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects in a cube that belong to no collection there: one of the two copies that there are while a collection moves
// to another cube. The next mount removes what a crash left of them.
// doc/on_disk_format.md, "U: unowned range".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swimstore {

inline constexpr uint8_t kUnownedRangeVersion = 1;

// Those that the collection in the entry's key would have, if it lay in this cube and had so many bits.
struct UnownedRange {
  uint32_t bits = 0;
};

std::string encode_unowned_range(const UnownedRange& range);
bool decode_unowned_range(std::string_view bytes, UnownedRange* range);

}  // namespace swimstore
