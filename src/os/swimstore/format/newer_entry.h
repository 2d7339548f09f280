// SPDX-License-Identifier: LGPL-2.1-or-later
// Entries of the tree that cannot be decoded: which of them a newer program wrote, and which are damaged. A newer form
// comes with a feature (format_version.h): where this program knows all features of a store, such an entry is damaged.
#pragma once

#include <cstdint>
#include <string_view>

namespace swimstore {

// No entry gets a higher version: not every byte that one may begin with is one.
inline constexpr uint8_t kEntryVersionMax = 31;

// The first byte is the version, and this program knows versions up to `known`.
inline bool is_newer_entry(std::string_view value, uint8_t known) {
  const auto version = static_cast<uint8_t>(value.empty() ? 0 : value.front());
  return version > known && version <= kEntryVersionMax;
}

// An onode has a version, and so has the extent shard in it. (onode_record.cc)
bool is_newer_onode(std::string_view value);

}  // namespace swimstore
