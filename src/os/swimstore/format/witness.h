// SPDX-License-Identifier: LGPL-2.1-or-later
// What cube 0 knows of a placement group, so that it can be made anew if the cube that it lies in is lost:
// which cube that is, as many bits of the hash as it has, and what Ceph keeps of its past. Each is an entry of its own,
// the former under the item "". That of collection `meta` says that all groups have a witness.
// doc/on_disk_format.md, "W: witness".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace swimstore {

inline constexpr uint8_t kWitnessVersion = 1;

// Omap keys of a placement group's own object that are witnessed: the version of its info, the info, the intervals
// before, and the epoch of its map (Ceph: pg_info_t, prepare_info_keymap).
inline constexpr std::string_view kInfoKey = "_info", kBigInfoKey = "_biginfo", kEpochKey = "_epoch";
inline constexpr std::array<std::string_view, 4> kWitnessedKeys = {"_infover", kInfoKey, kBigInfoKey, kEpochKey};
bool is_witnessed(std::string_view omap_key);

struct WitnessedGroup {
  uint32_t bits = 0;
  uint32_t home = 0;  // the cube
};

std::string encode_witnessed_group(const WitnessedGroup& group);
bool decode_witnessed_group(std::string_view bytes, WitnessedGroup* group);

}  // namespace swimstore
