// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/collection_list.h"

#include <algorithm>

#include "common/ceph_time.h"
#include "swimstore/format/key_codec.h"

namespace swimstore {

namespace {

// The lowest possible name with this shard, pool and bit-reversed hash.
ghobject_t lowest(shard_id_t shard, int64_t pool, uint32_t reversed_hash) {
  ghobject_t oid;
  oid.shard_id = shard;
  oid.hobj.pool = pool;
  oid.hobj.set_hash(hobject_t::_reverse_bits(reversed_hash));
  oid.generation = 0;
  return oid;
}

ObjectRange hash_range(shard_id_t shard, int64_t pool, uint32_t hash, uint32_t bits) {
  const uint64_t first = hobject_t::_reverse_bits(hash);
  const uint64_t end = first + (uint64_t{1} << (32 - bits));
  if (end > UINT32_MAX) {
    return {lowest(shard, pool, first), lowest(shard, pool + 1, 0)};
  }
  return {lowest(shard, pool, first), lowest(shard, pool, end)};
}

}  // namespace

std::vector<ObjectRange> object_ranges(const coll_t& cid, uint32_t bits) {
  spg_t pg;
  if (!cid.is_pg(&pg)) {
    return {hash_range(shard_id_t::NO_SHARD, -1, 0, 0)};
  }
  const int64_t pool = pg.pool();
  const int64_t temporary_pool = -2 - pool;
  return {hash_range(pg.shard, temporary_pool, pg.ps(), bits), hash_range(pg.shard, pool, pg.ps(), bits)};
}

bool overlap(const coll_t& a, uint32_t a_bits, const coll_t& b, uint32_t b_bits) {
  for (const ObjectRange& of_a : object_ranges(a, a_bits)) {
    for (const ObjectRange& of_b : object_ranges(b, b_bits)) {
      if (of_a.begin < of_b.end && of_b.begin < of_a.end) {
        return true;
      }
    }
  }
  return false;
}

int CollectionLister::list(Collection& collection, const ghobject_t& start, const ghobject_t& end, int max,
                           std::vector<ghobject_t>* objects, ghobject_t* next) {
  const auto began = ceph::mono_clock::now();
  const SharedLock lock(collection.lock);
  if (!collection.exists) {
    return -ENOENT;
  }
  if (const vtkv::Status status = read(collection, start, end, max, objects, next); !status.ok()) {
    return m_store.metadata_failure.met(m_store.home(collection).number, status, "the list of collection ",
                                        collection.cid);
  }
  m_store.took(l_swimstore_list_latency, "list", ceph::mono_clock::now() - began, collection.cid);
  return 0;
}

vtkv::Status CollectionLister::read(const Collection& collection, const ghobject_t& start, const ghobject_t& end,
                                    int max, std::vector<ghobject_t>* objects, ghobject_t* next) {
  // Callers pass the same variable as `start` and `*next`: it is set last.
  ghobject_t following = ghobject_t::get_max();
  bool full = false;
  for (const ObjectRange& range : object_ranges(collection.cid, collection.record.bits)) {
    const ghobject_t& low = std::max(start, range.begin);
    const ghobject_t& high = std::min(end, range.end);
    if (low >= high || full) {
      continue;
    }
    // Past `high` too: the first object there is the one to go on with.
    const auto it = m_store.home(collection).database().new_iterator(object_key(low), object_key(range.end));
    for (it->seek_to_first(); it->valid() && !full; it->next()) {
      ghobject_t oid;
      if (!decode_object_key(it->key(), &oid)) {
        return vtkv::Status::corruption("an object's key cannot be decoded");
      }
      if (oid >= high || objects->size() >= static_cast<size_t>(std::max(max, 0))) {
        following = std::move(oid);
        full = true;
      } else {
        objects->push_back(std::move(oid));
      }
    }
    VTKV_RETURN_IF_ERROR(it->status());
  }
  if (next != nullptr) {
    *next = std::move(following);
  }
  return {};
}

}  // namespace swimstore
