// SPDX-License-Identifier: LGPL-2.1-or-later
// What the tree keeps of one collection.
// doc/on_disk_format.md, "C: collection", "Hash range".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swimstore {

inline constexpr uint8_t kCollectionRecordVersion = 1;

struct CollectionRecord {
  struct HashRange {
    uint32_t hash_prefix = 0;
    uint32_t bits = 0;
    uint32_t cube = 0;
    bool operator==(const HashRange&) const = default;
  };
  uint32_t bits = 0;
  std::vector<HashRange> hash_ranges;
  bool operator==(const CollectionRecord&) const = default;
};

std::string encode_collection(const CollectionRecord& record);
bool decode_collection(std::string_view bytes, CollectionRecord* record);

}  // namespace swimstore
