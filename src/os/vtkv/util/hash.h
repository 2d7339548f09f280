// SPDX-License-Identifier: LGPL-2.1-or-later
// 64-bit hashes for filters, caches and shard choice. Not for checksums on disk (crc32c.h) and not
// cryptographic. The values of hash64 may be stored: XXH3's output is fixed for all versions.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace vtkv {

inline uint64_t hash64(std::string_view data) { return XXH3_64bits(data.data(), data.size()); }

inline uint64_t hash64(std::string_view data, uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

// A bijection that spreads an integer's bits over all 64 (the finalizer of splitmix64).
inline constexpr uint64_t mix64(uint64_t value) {
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27;
  value *= 0x94d049bb133111ebULL;
  value ^= value >> 31;
  return value;
}

}  // namespace vtkv
