// SPDX-License-Identifier: LGPL-2.1-or-later
// What the tree keeps of one object, except its extents beyond the first shard and its omap.
// doc/on_disk_format.md, "O: onode", "Attribute of an onode".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "include/buffer.h"

#include "swimstore/format/extent_record.h"
#include "swimstore/format/note_record.h"

namespace swimstore {

inline constexpr uint8_t kOnodeRecordVersion = 1;
inline constexpr uint64_t kObjectBytesMax = 0xffffffff;  // as BlueStore's

struct OnodeRecord {
  enum Flag : uint8_t {
    has_omap = 1,      // there may be omap keys or a header
    shard_inline = 2,  // size <= kShardBytes: shard 0 is in this record, and there are no extent keys
    has_hints = 4,
    omap_in_parts = 8,  // it is in rows (omap_row.h): of an object of no PG, in a store with several cubes
  };

  uint64_t nid = 0;  // 0: none given yet
  uint64_t size = 0;
  uint8_t flags = 0;
  uint64_t expected_object_size = 0;
  uint64_t expected_write_size = 0;
  uint32_t alloc_hint_flags = 0;
  std::map<std::string, ceph::bufferptr, std::less<>> attrs;

  bool test(Flag flag) const { return flags & flag; }
  void set(Flag flag, bool on) { flags = on ? flags | flag : flags & ~flag; }
};

// `shard` is encoded only with shard_inline set.
void encode_onode(const OnodeRecord& record, const ExtentShard& shard, std::string* out);
// False on malformed bytes, a version from the future, or an id or a size that no object has.
bool decode_onode(std::string_view bytes, OnodeRecord* record, ExtentShard* shard);

}  // namespace swimstore
