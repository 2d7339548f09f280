// SPDX-License-Identifier: LGPL-2.1-or-later
// The block: the unit that is written, checksummed, read and cached. Format version 1.
//
// A block starts at a multiple of 4096 bytes (a unit) and takes whole units; what is behind its body is
// zeros. All integers are little endian.
//
//   OFFSET  SIZE  FIELD
//        0     4  crc32c of the bytes from 4 to the end of the body
//        4     2  magic 0x6b62 ("bk")
//        6     1  format version: 1
//        7     1  kind (BlockKind)
//        8     8  id of the span it lies in; ids are never used twice, so that a block of an earlier
//                 owner of the zone, or one read from the wrong address, is not taken for this one
//       16     4  unit of the span at which it starts
//       20     4  body length in bytes
//       24     4  number of entries
//       28     4  number of restarts
//       32     …  body
//
// Body of the kinds entries, index and tombstones: the entries one after the other, then one fixed32 per
// restart, ascending: the offset in the body of an entry that shares no key bytes (the first entry is one).
// Entry:
//   varint32  key bytes shared with the entry before
//   varint32  key bytes that follow
//   byte      EntryType
//   varint64  sequence
//   varint32  value bytes
//   key bytes, value bytes
// Order: key ascending, then sequence descending.
//
//   entries    the user's
//   index      of one span, behind its blocks of entries, one entry per block: the block's first key and
//              sequence; value: where in the span it lies and what it holds (span/block_range.h)
//   tombstones   one entry per fragment: key = begin; value: varint32 length of end, end, varint32 count,
//              that many varint64 sequences, descending; the entry's own sequence is the first of them
// Body of filter and descriptor: bytes, see table/quotient_filter.h and table/run_format.h; no entries, no restarts.
//
// BlockHandle: varint32 ordinal of the span in the run's list, varint32 unit, varint32 units.
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
// The largest batch is 1 GiB (wal/log_format.h), and all of it may be one key and value; a block adds its header, the
// entry's, a restart and, in an index, where the block lies.
inline constexpr uint32_t kBlockBytesMax = (1u << 30) + (64u << 10);

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
