// SPDX-License-Identifier: LGPL-2.1-or-later
// Rows of omaps in parts: whether they can be read, and whose they are.

#include <utility>

#include <fmt/format.h>

#include "swimstore/format/collection_record.h"
#include "swimstore/format/key_codec.h"
#include "swimstore/format/newer_entry.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/object/collection_list.h"

namespace swimstore {

namespace {

// The store had one cube, and what is of no placement group may have rows before its record says so (CubeDivision).
bool is_undivided(vtkv::DB& database, const vtkv::Snapshot* snapshot) {
  std::string value;
  CollectionRecord record;
  return database.get(collection_key(coll_t::meta()), &value, snapshot).ok() && decode_collection(value, &record) &&
         record.generation == 0;
}

}  // namespace

// Of this cube, and of the one that has the objects whose omap rows lie here. No transaction that changes such an omap
// comes in between: it would hold this lock alone.
void Fsck::take_snapshots() {
  if (!m_options.online) {
    return;
  }
  const CollectionRef meta = m_store.collections.find(coll_t::meta());
  if (m_cube.number == 0 || !meta) {
    m_snapshot = m_cube.database().take_snapshot();
    return;
  }
  SharedLock lock(meta->lock);
  m_owner_snapshot = m_store.cubes[0].database().take_snapshot();
  m_snapshot = m_cube.database().take_snapshot();
}

void Fsck::release_snapshots() {
  if (m_snapshot != nullptr) {
    m_cube.database().release_snapshot(std::exchange(m_snapshot, nullptr));
  }
  if (m_owner_snapshot != nullptr) {
    m_store.cubes[0].database().release_snapshot(std::exchange(m_owner_snapshot, nullptr));
  }
}

void Fsck::load_row_owners() {
  m_row_owners = std::make_unique<RowOwners>();
  const vtkv::Snapshot* const snapshot = m_cube.number == 0 ? m_snapshot : m_owner_snapshot;
  const bool undivided = is_undivided(m_store.cubes[0].database(), snapshot);
  vtkv::DB& database = m_store.cubes[0].database();
  for (const ObjectRange& range : object_ranges(coll_t::meta(), 0)) {  // no others have one
    const auto objects = database.new_iterator(object_key(range.begin), object_key(range.end), snapshot);
    for (objects->seek_to_first(); objects->valid(); objects->next()) {
      OnodeRecord record;
      ExtentShard shard;
      if (!decode_onode(objects->value(), &record, &shard)) {
        m_row_owners->all = false;
      } else if (record.test(OnodeRecord::omap_in_parts) || undivided) {
        m_row_owners->nids.insert(record.nid);
      }
    }
    m_row_owners->all &= objects->status().ok();
  }
  const auto floors = database.new_iterator(std::string(1, key_prefix::omap_floor),
                                            std::string(1, key_prefix::omap_floor + 1), snapshot);
  for (floors->seek_to_first(); floors->valid(); floors->next()) {
    uint64_t nid = 0;
    if (decode_omap_floor_key(floors->key(), &nid)) {
      m_row_owners->nids.insert(nid);
    }
  }
  m_row_owners->all &= floors->status().ok();
}

// A damaged one may be the newest of its key: without it an older one would count.
void Fsck::visit_omap_row(std::string_view key, std::string_view value) {
  uint64_t nid = 0;
  std::string_view user_key;
  const bool has_key = decode_omap_row_key(key, &nid, &user_key);
  if (!is_mine(nid)) {
    return;
  }
  if (!m_row_owners) {
    load_row_owners();
  }
  OmapRow row;
  if (!decode_omap_row(value, &row)) {
    const std::string what = fmt::format("an omap row of object id {}", nid);
    if (m_options.may_hold_newer && is_newer_entry(value, kOmapRowVersion)) {
      found_newer(what);
    } else {
      found({.kind = FindingClass::only_copy_undecodable,
             .text = what + " is damaged, and no other OSD has a copy of it",
             .key = std::string(key)});
    }
  }
  if (m_row_owners->nids.contains(nid) || (has_key && nid == m_last_row_nid)) {
    return;
  }
  m_last_row_nid = nid;  // said of its first key
  if (!m_row_owners->all) {
    ++m_unclear;
    return;
  }
  found({.kind = FindingClass::omap_orphaned,
         .text = has_key ? fmt::format("there are omap rows of object id {}, which does not exist", nid)
                         : fmt::format("the key of an omap row is damaged: {}", describe_object_key(key)),
         .key = std::string(key)});
}

}  // namespace swimstore
