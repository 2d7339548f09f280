// SPDX-License-Identifier: LGPL-2.1-or-later
// What one transaction changes besides the tree: slots that change hands, sums per pool, object ids.
// It travels in the log as a note of the batch, so that no transaction writes allocation pages or
// counters; recovery replays it onto what the last checkpoint holds.
// doc/on_disk_format.md, "Note", "Slot of a note", "Pool of a note".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "swimstore/format/size_class.h"
#include "vtkv/status.h"

namespace swimstore {

// They count up, so nothing gets here; a greater one on a disk was forged, and could not be counted on from.
inline constexpr uint64_t kObjectIdMax = uint64_t{1} << 55;

struct AllocationDelta {
  std::vector<SlotBlocks> allocated;
  std::vector<SlotBlocks> freed;
  bool empty() const { return allocated.empty() && freed.empty(); }
};

// Per-pool sums; a transaction changes them by a difference. Bytes.
struct PoolUsage {
  int64_t allocated = 0;  // blocks that are referred to
  int64_t stored = 0;     // logical bytes
  int64_t omap = 0;       // keys and values
  int64_t objects = 0;
  // Of compressed blobs: bytes of the blocks that live in them, whole ones, of what they were compressed into, and of
  // the blocks that this takes.
  int64_t compressed_original = 0;
  int64_t compressed = 0;
  int64_t compressed_allocated = 0;

  bool has_compressed() const { return compressed_original != 0 || compressed != 0 || compressed_allocated != 0; }
  // In the order in which records have them: those of blobs last.
  static constexpr int64_t PoolUsage::* kSums[] = {&PoolUsage::allocated,
                                                   &PoolUsage::stored,
                                                   &PoolUsage::omap,
                                                   &PoolUsage::objects,
                                                   &PoolUsage::compressed_original,
                                                   &PoolUsage::compressed,
                                                   &PoolUsage::compressed_allocated};
  static constexpr size_t kSumsWithoutCompressed = 4;

  void encode(bool with_compressed, std::string* to) const;
  bool decode(std::string_view* cursor, bool with_compressed);  // false: malformed
  PoolUsage& operator+=(const PoolUsage& other);
  bool is_zero() const { return *this == PoolUsage{}; }
  bool operator==(const PoolUsage&) const = default;
};

struct CubeDelta {
  AllocationDelta allocation;
  std::map<int64_t, PoolUsage> pools;
  uint64_t next_object_id = 0;  // 0: unchanged; else all object ids below it are taken
  bool empty() const { return allocation.empty() && pools.empty() && next_object_id == 0; }
  std::string encode() const;
  // Code::corruption, Code::unsupported. Nothing is assumed of `bytes`.
  static vtkv::Status decode(std::string_view bytes, CubeDelta* delta);
};

}  // namespace swimstore
