// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/key_codec.h"

#include "swimstore/format/collection_name.h"
#include "swimstore/format/slot_references.h"
#include "vtkv/util/coding.h"

namespace swimstore {

namespace {

constexpr uint64_t kPoolSign = uint64_t{1} << 63;
constexpr uint64_t kPoolMax = ~uint64_t{0};  // hobject_t::get_max(); no real pool has this number

void append_text(std::string_view text, std::string* key) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 1) {
      key->push_back('\1');
      key->push_back(static_cast<char>(c + 1));
    } else {
      key->push_back(c);
    }
  }
  key->push_back('\0');
}

bool decode_text(std::string_view* cursor, std::string* text) {
  text->clear();
  while (!cursor->empty()) {
    const char c = cursor->front();
    cursor->remove_prefix(1);
    if (c == '\0') {
      return true;
    }
    if (c != '\1') {
      text->push_back(c);
      continue;
    }
    if (cursor->empty() || (cursor->front() != '\1' && cursor->front() != '\2')) {
      return false;
    }
    text->push_back(static_cast<char>(cursor->front() - 1));
    cursor->remove_prefix(1);
  }
  return false;
}

std::string number_key(char prefix, uint64_t number) {
  std::string key(1, prefix);
  vtkv::put_ordered64(&key, number);
  return key;
}

bool take_prefix(std::string_view* key, char prefix) {
  if (key->empty() || key->front() != prefix) {
    return false;
  }
  key->remove_prefix(1);
  return true;
}

bool decode_number_key(std::string_view key, char prefix, uint64_t* number) {
  return take_prefix(&key, prefix) && vtkv::get_ordered64(&key, number) && key.empty();
}

// What the user calls it, below an object's id.
std::string user_key_of(char prefix, uint64_t nid, std::string_view user_key) {
  std::string key;
  key.reserve(kOmapPrefixBytes + user_key.size());
  key.push_back(prefix);
  vtkv::put_ordered64(&key, nid);
  key.append(user_key);
  return key;
}

bool decode_user_key(std::string_view key, char prefix, uint64_t* nid, std::string_view* user_key) {
  if (!take_prefix(&key, prefix) || !vtkv::get_ordered64(&key, nid)) {
    return false;
  }
  *user_key = key;
  return true;
}

bool decode_name(std::string_view* cursor, const std::string& effective_key, std::string* name, std::string* key) {
  if (cursor->empty()) {
    return false;
  }
  const char sign = cursor->front();
  cursor->remove_prefix(1);
  if (sign == '=') {
    *name = effective_key;
    key->clear();
    return true;
  }
  if ((sign != '<' && sign != '>') || !decode_text(cursor, name)) {
    return false;
  }
  *key = effective_key;
  return sign == '<' ? *name < effective_key : *name > effective_key;
}

}  // namespace

std::string collection_key(const coll_t& cid) { return key_prefix::collection + cid.to_str(); }

bool decode_collection_key(std::string_view key, coll_t* cid) {
  return take_prefix(&key, key_prefix::collection) && decode_collection_name(key, cid);
}

std::string unowned_range_key(const coll_t& cid) { return key_prefix::unowned + cid.to_str(); }

bool decode_unowned_range_key(std::string_view key, coll_t* cid) {
  return take_prefix(&key, key_prefix::unowned) && decode_collection_name(key, cid);
}

std::string witness_key(const coll_t& cid, std::string_view item) {
  std::string key = key_prefix::witness + cid.to_str();
  key.push_back('\0');
  key.append(item);
  return key;
}

bool decode_witness_key(std::string_view key, coll_t* cid, std::string_view* item) {
  const size_t end = key.find('\0');
  if (end == std::string_view::npos || !take_prefix(&key, key_prefix::witness) ||
      !decode_collection_name(key.substr(0, end - 1), cid)) {
    return false;
  }
  *item = key.substr(end);
  return true;
}

void append_object_key(const ghobject_t& oid, std::string* key) {
  key->push_back(key_prefix::object);
  key->push_back(oid.max ? 1 : 0);
  if (oid.max) {
    return;
  }
  const hobject_t& hobj = oid.hobj;
  key->push_back(static_cast<char>(static_cast<uint8_t>(oid.shard_id.id) ^ 0x80));
  if (hobj.is_max()) {
    vtkv::put_ordered64(key, kPoolMax);
  } else {
    vtkv::put_ordered64(key, static_cast<uint64_t>(hobj.pool) ^ kPoolSign);
    vtkv::put_ordered32(key, hobj.get_bitwise_key_u32());
    append_text(hobj.nspace, key);
    const std::string& effective = hobj.get_effective_key();
    append_text(effective, key);
    const int order = hobj.oid.name.compare(effective);
    if (order == 0) {
      key->push_back('=');
    } else {
      key->push_back(order < 0 ? '<' : '>');
      append_text(hobj.oid.name, key);
    }
    vtkv::put_ordered64(key, hobj.snap.val);
  }
  vtkv::put_ordered64(key, oid.generation);
}

std::string object_key(const ghobject_t& oid) {
  std::string key;
  key.reserve(48 + oid.hobj.oid.name.size() + oid.hobj.nspace.size() + oid.hobj.get_key().size());
  append_object_key(oid, &key);
  return key;
}

bool decode_object_key(std::string_view key, ghobject_t* oid) {
  if (!take_prefix(&key, key_prefix::object) || key.empty()) {
    return false;
  }
  const char max = key.front();
  key.remove_prefix(1);
  if (max == 1) {
    *oid = ghobject_t::get_max();
    return key.empty();
  }
  uint64_t pool = 0;
  if (max != 0 || key.empty()) {
    return false;
  }
  const shard_id_t shard(static_cast<int8_t>(static_cast<uint8_t>(key.front()) ^ 0x80));
  key.remove_prefix(1);
  if (!vtkv::get_ordered64(&key, &pool)) {
    return false;
  }
  ghobject_t found;
  found.shard_id = shard;
  if (pool == kPoolMax) {
    found.hobj = hobject_t::get_max();
  } else {
    uint32_t hash = 0;
    uint64_t snap = 0;
    std::string nspace, effective, name, locator;
    if (!vtkv::get_ordered32(&key, &hash) || !decode_text(&key, &nspace) || !decode_text(&key, &effective) ||
        !decode_name(&key, effective, &name, &locator) || !vtkv::get_ordered64(&key, &snap)) {
      return false;
    }
    found.hobj.pool = static_cast<int64_t>(pool ^ kPoolSign);
    found.hobj.set_bitwise_key_u32(hash);
    found.hobj.nspace = std::move(nspace);
    found.hobj.oid.name = std::move(name);
    found.hobj.set_key(locator);
    found.hobj.snap = snap;
  }
  uint64_t generation = 0;
  if (!vtkv::get_ordered64(&key, &generation) || !key.empty()) {
    return false;
  }
  found.generation = generation;
  *oid = std::move(found);
  return true;
}

std::string extent_key(uint64_t nid, uint32_t shard) {
  std::string key = number_key(key_prefix::extent, nid);
  vtkv::put_ordered32(&key, shard);
  return key;
}

std::string extent_range_end(uint64_t nid) { return number_key(key_prefix::extent, nid + 1); }

bool decode_extent_key(std::string_view key, uint64_t* nid, uint32_t* shard) {
  return take_prefix(&key, key_prefix::extent) && vtkv::get_ordered64(&key, nid) && vtkv::get_ordered32(&key, shard) &&
         key.empty();
}

std::string omap_header_key(uint64_t nid) { return number_key(key_prefix::omap_header, nid); }

bool decode_omap_header_key(std::string_view key, uint64_t* nid) {
  return decode_number_key(key, key_prefix::omap_header, nid);
}

std::string omap_key(uint64_t nid, std::string_view user_key) { return user_key_of(key_prefix::omap, nid, user_key); }

std::string omap_range_end(uint64_t nid) { return number_key(key_prefix::omap, nid + 1); }

bool decode_omap_key(std::string_view key, uint64_t* nid, std::string_view* user_key) {
  return decode_user_key(key, key_prefix::omap, nid, user_key);
}

std::string omap_row_key(uint64_t nid, std::string_view user_key) {
  return user_key_of(key_prefix::omap_row, nid, user_key);
}

std::string omap_row_range_end(uint64_t nid) { return number_key(key_prefix::omap_row, nid + 1); }

bool decode_omap_row_key(std::string_view key, uint64_t* nid, std::string_view* user_key) {
  return decode_user_key(key, key_prefix::omap_row, nid, user_key);
}

std::string omap_tombstone_key(uint64_t nid, std::string_view user_key) {
  return user_key_of(key_prefix::omap_tombstone, nid, user_key);
}

std::string omap_tombstone_range_end(uint64_t nid) { return number_key(key_prefix::omap_tombstone, nid + 1); }

bool decode_omap_tombstone_key(std::string_view key, uint64_t* nid, std::string_view* user_key) {
  return decode_user_key(key, key_prefix::omap_tombstone, nid, user_key);
}

std::string omap_floor_key(uint64_t nid) { return number_key(key_prefix::omap_floor, nid); }

bool decode_omap_floor_key(std::string_view key, uint64_t* nid) {
  return decode_number_key(key, key_prefix::omap_floor, nid);
}

std::string slot_reference_key(SlotAddress slot, uint32_t group) {
  std::string key = number_key(key_prefix::slot_reference, slot.packed());
  vtkv::put_fixed8(&key, static_cast<uint8_t>(group));
  return key;
}

bool decode_slot_reference_key(std::string_view key, SlotAddress* slot, uint32_t* group) {
  uint64_t packed = 0;
  uint8_t number = 0;
  if (!take_prefix(&key, key_prefix::slot_reference) || !vtkv::get_ordered64(&key, &packed) ||
      !vtkv::get_fixed8(&key, &number) || !key.empty()) {
    return false;
  }
  *slot = SlotAddress::unpack(packed);
  *group = number;
  return slot->is_valid() && *group * kReferenceGroupBlocks < slot_blocks(slot->size_class);
}

std::string quarantined_key(uint32_t number, std::string_view key) {
  std::string quarantined(1, key_prefix::quarantined);
  vtkv::put_ordered32(&quarantined, number);
  quarantined.append(key);
  return quarantined;
}

bool decode_quarantined_key(std::string_view quarantined, uint32_t* number, std::string_view* key) {
  if (!take_prefix(&quarantined, key_prefix::quarantined) || !vtkv::get_ordered32(&quarantined, number) ||
      quarantined.empty()) {
    return false;
  }
  *key = quarantined;
  return true;
}

}  // namespace swimstore
