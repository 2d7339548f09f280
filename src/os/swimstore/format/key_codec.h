// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of everything SwimStore keeps in a cube's tree.
//
// One prefix byte, then:
//
//   C  collection record     coll_t as text
//   O  onode record          encoded ghobject_t; byte order equals ghobject_t's operator<=>
//   E  extent shard          nid (u64 BE), shard number (u32 BE)
//   H  omap header           nid (u64 BE)
//   M  omap value            nid (u64 BE), the user's key as it is
//   S  slot references       packed slot address (u64 BE), group (u8); format/slot_references.h
//   L  quarantined entry     number (u32 BE), then the key of an entry that repair took out of service
//   A, B, N                  belong to the cube
//
// An object key holds no collection: a split or a merge rewrites no object. Omap and extents hang on the
// object's nid, so a rename rewrites the onode record only.
//
// Encoded ghobject_t:
//   u8       0, or 1 for ghobject_t::get_max() (nothing follows then)
//   u8       shard + 0x80
//   u64 BE   pool with the sign bit flipped; ~0 is hobject_t's max
//   u32 BE   hash, bits reversed
//   text     namespace
//   text     effective key (key, or the name when there is no key)
//   u8       '=' the name is the effective key; '<' or '>' name follows, as it sorts against the key
//   text     name, only after '<' or '>'
//   u64 BE   snap
//   u64 BE   generation
// text: byte 00 becomes 01 01, byte 01 becomes 01 02, end is 00; so a prefix sorts first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/hobject.h"
#include "osd/osd_types.h"

#include "swimstore/format/size_class.h"

namespace swimstore {

namespace key_prefix {
inline constexpr char collection = 'C';
inline constexpr char object = 'O';
inline constexpr char extent = 'E';
inline constexpr char omap_header = 'H';
inline constexpr char omap = 'M';
inline constexpr char slot_reference = 'S';
inline constexpr char quarantined = 'L';
}  // namespace key_prefix

// A range over a whole kind is
// [string(1, key_prefix::x), string(1, key_prefix::x + 1)).
std::string collection_key(const coll_t& cid);
bool decode_collection_key(std::string_view key, coll_t* cid);

void append_object_key(const ghobject_t& oid, std::string* key);
std::string object_key(const ghobject_t& oid);
// False when the bytes are no object key; *oid is then unspecified.
bool decode_object_key(std::string_view key, ghobject_t* oid);

std::string extent_key(uint64_t nid, uint32_t shard);
std::string extent_range_end(uint64_t nid);  // above every shard of nid
bool decode_extent_key(std::string_view key, uint64_t* nid, uint32_t* shard);

std::string omap_header_key(uint64_t nid);
bool decode_omap_header_key(std::string_view key, uint64_t* nid);

inline constexpr size_t kOmapPrefixBytes = 9;  // what stands before the user's key
std::string omap_key(uint64_t nid, std::string_view user_key);  // user_key "": start of nid's omap
std::string omap_range_end(uint64_t nid);                       // above every omap key of nid
bool decode_omap_key(std::string_view key, uint64_t* nid, std::string_view* user_key);

// Of blocks from kReferenceGroupBlocks * group on.
std::string slot_reference_key(SlotAddress slot, uint32_t group);
bool decode_slot_reference_key(std::string_view key, SlotAddress* slot, uint32_t* group);

// The value is the entry's own. `number` tells entries apart that had the same key one after the other.
std::string quarantined_key(uint32_t number, std::string_view key);
bool decode_quarantined_key(std::string_view quarantined, uint32_t* number, std::string_view* key);

}  // namespace swimstore
