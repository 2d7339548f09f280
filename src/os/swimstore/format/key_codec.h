// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of everything SwimStore keeps in a cube's tree.
// doc/on_disk_format.md, "Keys of the tree", "Object name", "Key of a collection", "Key of an extent shard",
// "Key of an omap header", "Key of an omap value", "Key of a row", "Key of a floor", "Key of a tombstone", "Key of slot
// references", "Key of a quarantined entry", "Key of an unowned range", "Key of a witness". The prefixes A, B and N
// belong to the cube.
//
// An object key holds no collection: a split or a merge rewrites no object. Omap and extents hang on the
// object's nid, so a rename rewrites the onode record only.
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
inline constexpr char omap_row = 'P';
inline constexpr char omap_floor = 'F';
inline constexpr char omap_tombstone = 'T';
inline constexpr char slot_reference = 'S';
inline constexpr char quarantined = 'L';
inline constexpr char unowned = 'U';
inline constexpr char witness = 'W';
}  // namespace key_prefix

// A range over a whole kind is
// [string(1, key_prefix::x), string(1, key_prefix::x + 1)).
std::string collection_key(const coll_t& cid);
bool decode_collection_key(std::string_view key, coll_t* cid);

std::string unowned_range_key(const coll_t& cid);
bool decode_unowned_range_key(std::string_view key, coll_t* cid);

// Of a placement group's witness (witness.h).
std::string witness_key(const coll_t& cid, std::string_view item);
bool decode_witness_key(std::string_view key, coll_t* cid, std::string_view* item);

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
std::string omap_range_end(uint64_t nid);  // above every omap key of nid
bool decode_omap_key(std::string_view key, uint64_t* nid, std::string_view* user_key);

// Of an omap that is kept in parts (omap_row.h): rows in each cube; which of them are tombstones, beside them; and a
// floor in cube 0. What stands before the user's key is as long as in an omap key.
std::string omap_row_key(uint64_t nid, std::string_view user_key);  // user_key "": start of nid's rows
std::string omap_row_range_end(uint64_t nid);
bool decode_omap_row_key(std::string_view key, uint64_t* nid, std::string_view* user_key);
std::string omap_tombstone_key(uint64_t nid, std::string_view user_key);
std::string omap_tombstone_range_end(uint64_t nid);
bool decode_omap_tombstone_key(std::string_view key, uint64_t* nid, std::string_view* user_key);
std::string omap_floor_key(uint64_t nid);
bool decode_omap_floor_key(std::string_view key, uint64_t* nid);

// Of blocks from kReferenceGroupBlocks * group on.
std::string slot_reference_key(SlotAddress slot, uint32_t group);
bool decode_slot_reference_key(std::string_view key, SlotAddress* slot, uint32_t* group);

// The value is the entry's own. `number` tells entries apart that had the same key one after the other.
std::string quarantined_key(uint32_t number, std::string_view key);
bool decode_quarantined_key(std::string_view quarantined, uint32_t* number, std::string_view* key);

}  // namespace swimstore
