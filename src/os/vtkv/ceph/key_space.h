// SPDX-License-Identifier: LGPL-2.1-or-later
// How a KeyValueDB's (prefix, key) becomes one key of the engine, so that the engine's order is: by prefix,
// then by key, both bytewise: doc/on_disk_format.md, "Keys of a KeyValueDB".
//
// The byte 00 ends a prefix and sorts before whatever could go on with it; no key of the engine reaches
// ff, which bounds them all; and a prefix of ordinary text is stored as it is. For good: it is on disk.
#pragma once

#include <string>
#include <string_view>

namespace vtkv {

// Keys from lower, included, to upper, excluded.
struct EncodedRange {
  std::string lower;
  std::string upper;
};

std::string encode_key(std::string_view prefix, std::string_view key);
// False, with nothing set, when no prefix ends in `encoded`: this adapter did not write it.
bool decode_key(std::string_view encoded, std::string* prefix, std::string* key);
// `encoded` without its prefix; empty when it has none.
std::string_view key_part(std::string_view encoded);

EncodedRange range_of_prefix(std::string_view prefix);
EncodedRange range_of_everything();

}  // namespace vtkv
