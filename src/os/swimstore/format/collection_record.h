// SPDX-License-Identifier: LGPL-2.1-or-later
// What the tree keeps of one collection.
// doc/on_disk_format.md, "C: collection", "Hash range".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swimstore {

inline constexpr uint32_t kHashBits = 32;  // of an object's hash

// Records of a store with one cube are of version 1, which knows no generation.
inline constexpr uint8_t kCollectionRecordVersion = 2;

struct CollectionRecord {
  struct HashRange {
    uint32_t hash_prefix = 0;
    uint32_t bits = 0;
    uint32_t cube = 0;
    bool operator==(const HashRange&) const = default;
  };
  uint32_t bits = 0;
  // One: the whole collection, and the cube that it lies in.
  std::vector<HashRange> hash_ranges;
  // Of two records that claim the same objects, in two cubes, the one with the greater generation is right. 0: the
  // store has one cube, or got others just now.
  uint64_t generation = 0;

  CollectionRecord() = default;
  CollectionRecord(uint32_t hash, uint32_t bits, uint32_t home, uint64_t generation)
      : bits(bits), hash_ranges{{hash, bits, home}}, generation(generation) {}
  uint32_t home() const { return hash_ranges.empty() ? 0 : hash_ranges.front().cube; }
  bool operator==(const CollectionRecord&) const = default;
};

std::string encode_collection(const CollectionRecord& record);
bool decode_collection(std::string_view bytes, CollectionRecord* record);

}  // namespace swimstore
