// SPDX-License-Identifier: LGPL-2.1-or-later
// The block: the unit that is written, checksummed, read and cached: doc/on_disk_format.md, "Block", "Block handle".
// What is in its body: "Entry", and "Filter" (table/quotient_filter.h) and "Run descriptor" (table/run_format.h).
//
// Ids of spans are never used twice, so that a block of an earlier owner of the zone, or one read from the wrong
// address, is not taken for this one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vtkv {

static_assert(std::endian::native == std::endian::little, "durable structs are written as they lie in memory");

inline constexpr uint32_t kUnitBytes = 4096;
inline constexpr uint16_t kBlockMagic = 0x6b62;
inline constexpr uint8_t kBlockVersion = 1;
inline constexpr uint8_t kCompressedBlockVersion = 2;  // its body: span/block_compression.h
// The largest batch is 1 GiB (wal/log_format.h), and all of it may be one key and value; a block adds its header, the
// entry's, a restart and, in an index, where the block lies.
inline constexpr uint32_t kBlockBytesMax = (1u << 30) + (64u << 10);
inline constexpr uint32_t kBlockUnitsMax = kBlockBytesMax / kUnitBytes;

enum class BlockKind : uint8_t { entries = 1, index = 2, tombstones = 3, filter = 4, descriptor = 5 };

struct block_header_t {
  uint32_t crc32c;
  uint16_t magic;
  uint8_t version;
  uint8_t kind;
  uint64_t span_id;
  uint32_t unit;
  uint32_t body_bytes;
  uint32_t entries;
  uint32_t restarts;
};
static_assert(sizeof(block_header_t) == 32);
static_assert(offsetof(block_header_t, span_id) == 8);
static_assert(offsetof(block_header_t, restarts) == 28);

// Where a block lies: in which span of a run's list, and where in it.
struct BlockHandle {
  uint32_t span = 0;
  uint32_t unit = 0;
  uint32_t units = 0;

  void encode(std::string* out) const;
  bool decode(std::string_view* in);
  bool operator==(const BlockHandle&) const = default;
};

// A run of contiguous blocks on disk: blocks of entries and the index of these, or blocks of other kinds.
struct Span {
  uint64_t id = 0;      // random, never used twice
  uint64_t offset = 0;  // in the zone file, in bytes
  uint32_t units = 0;
  uint32_t index_unit = 0;  // where its index lies
  uint32_t index_units = 0;  // 0: it holds no entries

  bool holds_entries() const { return index_units > 0; }
  uint64_t bytes() const { return static_cast<uint64_t>(units) * kUnitBytes; }
  bool operator==(const Span&) const = default;
};

inline uint32_t units_of(uint64_t bytes) { return static_cast<uint32_t>((bytes + kUnitBytes - 1) / kUnitBytes); }

}  // namespace vtkv
