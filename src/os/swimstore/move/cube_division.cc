// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/move/cube_division.h"

#include <utility>

#include "common/debug.h"

#include "swimstore/format/key_codec.h"
#include "swimstore/format/omap_row.h"
#include "swimstore/format/onode_record.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/object/collection_list.h"
#include "vtkv/util/mutations.h"

#define dout_context m_store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.divide "

namespace swimstore {

using vtkv::Mutation;
using vtkv::Status;

namespace {

constexpr size_t kBatchBytes = 1u << 20;  // about, of a transaction

Status decode(std::string_view key, std::string_view value, OnodeRecord* record, ExtentShard* shard) {
  ghobject_t oid;
  return decode_object_key(key, &oid) && decode_onode(value, record, shard)
             ? Status()
             : Status::corruption("the record of an object of cube 0, " + describe_object_key(key) +
                                  ", cannot be decoded");
}

}  // namespace

Status CubeDivision::for_each_internal_object(const Visit& visit) {
  for (const ObjectRange& range : object_ranges(coll_t::meta(), 0)) {
    const auto objects = database().new_iterator(object_key(range.begin), object_key(range.end));
    for (objects->seek_to_first(); objects->valid(); objects->next()) {
      VTKV_RETURN_IF_ERROR(visit(objects->key(), objects->value()));
    }
    VTKV_RETURN_IF_ERROR(objects->status());
  }
  return {};
}

namespace {

// Not what is known to be of a placement group.
bool may_be_internal(std::string_view key) {
  ghobject_t oid;
  return !decode_object_key(key, &oid) || oid.hobj.is_meta();
}

}  // namespace

// What is put back later would have an omap of its own.
Status CubeDivision::check_nothing_is_quarantined() {
  const auto entries =
      database().new_iterator(std::string(1, key_prefix::quarantined), std::string(1, key_prefix::quarantined + 1));
  for (entries->seek_to_first(); entries->valid(); entries->next()) {
    uint32_t number = 0;
    std::string_view key;
    if (!decode_quarantined_key(entries->key(), &number, &key) || may_be_internal(key)) {
      return Status::failed(
          "repair has quarantined entries that may be of the OSD's own objects, and those have to be whole before "
          "cube 0 becomes one of several: look at 'ceph-swimstore-tool list --quarantined-entries', then use put-back, "
          "or forget-quarantined-entries");
    }
  }
  return entries->status();
}

Status CubeDivision::measure(uint64_t* bytes) {
  *bytes = 0;
  VTKV_RETURN_IF_ERROR(check_nothing_is_quarantined());
  return for_each_internal_object([&](std::string_view key, std::string_view value) {
    OnodeRecord record;
    ExtentShard shard;
    VTKV_RETURN_IF_ERROR(decode(key, value, &record, &shard));
    *bytes += key.size() + value.size();
    const auto values = database().new_iterator(omap_key(record.nid, ""), omap_range_end(record.nid));
    for (values->seek_to_first(); values->valid(); values->next()) {
      *bytes += values->key().size() + values->value().size();
    }
    return values->status();
  });
}

Status CubeDivision::run(bool had_one_cube) {
  bool is_divided = true;
  for (const CollectionRef& collection : m_store.collections.all()) {
    SharedLock lock(collection->lock);
    if (collection->record.generation == 0 && !had_one_cube) {
      return Status::corruption("the record of collection '" + collection->cid.to_str() +
                                "' in cube 0 has no generation, in a store that was made with several cubes");
    }
    is_divided &= collection->record.generation > 0;
  }
  if (is_divided) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(check_nothing_is_quarantined());
  VTKV_RETURN_IF_ERROR(for_each_internal_object(
      [this](std::string_view key, std::string_view value) { return put_in_parts(key, value); }));
  VTKV_RETURN_IF_ERROR(give_generations());
  dout(0) << "cube 0 was the only one: the omaps of " << m_objects << " objects of " << coll_t::meta()
          << " are in parts"
          << ", " << m_values << " values" << dendl;
  return {};
}

Status CubeDivision::write_if_full() {
  return m_batch.encoded_bytes() < kBatchBytes ? Status()
                                               : database().write(std::exchange(m_batch, {}), {.sync = false});
}

// An attempt that was cut short may have copied some, or all.
Status CubeDivision::copy_to_rows(uint64_t nid) {
  m_batch.remove_range(omap_row_key(nid, ""), omap_row_range_end(nid));
  const auto values = database().new_iterator(omap_key(nid, ""), omap_range_end(nid));
  std::string row;
  for (values->seek_to_first(); values->valid(); values->next(), ++m_values) {
    row.clear();
    // Every later write has an id above the object's.
    encode_omap_row({OmapRow::Kind::value, nid, values->value()}, &row);
    m_batch.put(omap_row_key(nid, values->key().substr(kOmapPrefixBytes)), row);
    VTKV_RETURN_IF_ERROR(write_if_full());
  }
  return values->status();
}

Status CubeDivision::put_in_parts(std::string_view key, std::string_view value) {
  OnodeRecord record;
  ExtentShard shard;
  VTKV_RETURN_IF_ERROR(decode(key, value, &record, &shard));
  if (record.test(OnodeRecord::omap_in_parts)) {
    return {};  // by an attempt that was cut short
  }
  const uint64_t nid = record.nid;
  const bool is_early = vtkv::mutated(Mutation::divided_before_copied);
  if (record.test(OnodeRecord::has_omap) && !is_early) {
    VTKV_RETURN_IF_ERROR(copy_to_rows(nid));
    m_batch.remove_range(omap_key(nid, ""), omap_range_end(nid));
  }
  record.set(OnodeRecord::omap_in_parts, true);
  record.set(OnodeRecord::has_omap, true);  // what other cubes' transactions do cannot be told to the record
  std::string encoded;
  encode_onode(record, shard, &encoded);
  m_batch.put(key, encoded);
  ++m_objects;
  VTKV_RETURN_IF_ERROR(is_early ? copy_to_rows(nid) : Status());
  return write_if_full();
}

// In the last transaction, so when it is durable, all is.
Status CubeDivision::give_generations() {
  uint64_t last = 0;  // there was none before
  for (const CollectionRef& collection : m_store.collections.all()) {
    ExclusiveLock lock(collection->lock);
    if (collection->record.generation == 0) {
      collection->record.generation = m_store.collections.new_generation([&last] { return ++last; });
      m_batch.put(collection_key(collection->cid), encode_collection(collection->record));
    }
  }
  return database().write(std::exchange(m_batch, {}));
}

}  // namespace swimstore
