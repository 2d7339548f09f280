// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/onode_cache.h"

#include <iterator>
#include <sstream>
#include <utility>

#include "vtkv/util/invariants.h"

namespace swimstore {

namespace {

constexpr unsigned kPassedOverMax = 8;  // for each that goes
constexpr size_t kEntryOverheadBytes = 64;  // list node, entry of a table that is half full

}  // namespace

OnodeCache::OnodeCache(vtkv::DB& database, size_t capacity_bytes)
    : m_database(database), m_capacity_bytes(capacity_bytes) {}

// By the hash that places the object, which is there already. Its lower bits are those of the group.
OnodeCache::Shard& OnodeCache::shard_of(const ghobject_t& oid) {
  constexpr uint32_t kGoldenRatio = 0x9e3779b9;
  return m_shards[(oid.hobj.get_hash() * kGoldenRatio >> 16) % kShards];
}

vtkv::Status OnodeCache::find(const ghobject_t& oid, OnodeRef* onode, Use use) {
  const Name name(oid);
  Shard& shard = shard_of(oid);
  OnodeRef loaded;  // freed, if it is another's that is taken, without the lock
  vtkv::MutexLock lock(shard.mutex);
  if (take_cached(shard, name, onode, use)) {
    m_hits.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  m_misses.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  VTKV_RETURN_IF_ERROR(load(oid, &loaded));
  lock.lock();
  if (take_cached(shard, name, onode, use)) {
    return {};  // another was first
  }
  *onode = loaded;
  const size_t bytes = loaded->memory_bytes() + kEntryOverheadBytes;
  loaded->counted_bytes = bytes;
  shard.by_name.insert({name.hash, loaded.get()});
  const auto place = use == Use::again ? shard.onodes.begin() : shard.onodes.end();
  (*onode)->in_cache = shard.onodes.insert(place, std::move(loaded));
  shard.bytes += bytes;
  trim(shard, m_capacity_bytes / kShards);
  return {};
}

bool OnodeCache::take_cached(Shard& shard, const Name& name, OnodeRef* onode, Use use) {
  const auto found = shard.by_name.find(name);
  if (found == shard.by_name.end()) {
    return false;
  }
  *onode = found->onode;
  (*onode)->looked_up |= use == Use::again;
  return true;
}

vtkv::Status OnodeCache::load(const ghobject_t& oid, OnodeRef* onode) const {
  OnodeRef loaded(new Onode(oid));
  std::string value;
  const vtkv::Status status = m_database.get(loaded->key, &value);
  if (status.is_not_found()) {
    loaded->extents.set_all_loaded();
    *onode = std::move(loaded);
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  ExtentShard shard;
  if (!decode_onode(value, &loaded->record, &shard)) {
    std::ostringstream message;
    message << "the record of object " << oid << " cannot be decoded";
    return vtkv::Status::corruption(message.str());
  }
  loaded->exists = true;
  if (loaded->record.test(OnodeRecord::shard_inline)) {
    loaded->extents.set_inline(std::move(shard));
  }
  *onode = std::move(loaded);
  return {};
}

void OnodeCache::forget(const ghobject_t& oid) {
  Shard& shard = shard_of(oid);
  vtkv::MutexLock lock(shard.mutex);
  if (const auto found = shard.by_name.find(Name(oid)); found != shard.by_name.end()) {
    erase(shard, *found->onode);
  }
}

void OnodeCache::erase(Shard& shard, Onode& onode) {
  VTKV_ASSERT(shard.bytes >= onode.counted_bytes);
  shard.bytes -= onode.counted_bytes;
  shard.by_name.erase(Name(onode.oid));
  shard.onodes.erase(onode.in_cache);  // the last reference, perhaps
}

vtkv::Status OnodeCache::load_extents(Onode& onode, uint32_t first, uint32_t last) {
  bool was_read = false;
  const vtkv::Status loaded = onode.extents.load(m_database, onode.record.nid, first, last, &was_read);
  if (was_read) {
    resized(onode);
  }
  return loaded;
}

// Of two readers that load at once, each counts what both have loaded.
void OnodeCache::resized(const Onode& onode) {
  if (onode.memory_bytes() + kEntryOverheadBytes == onode.counted_bytes) {
    return;
  }
  Shard& shard = shard_of(onode.oid);
  vtkv::MutexLock lock(shard.mutex);
  if (const auto found = shard.by_name.find(Name(onode.oid)); found != shard.by_name.end() && found->onode == &onode) {
    const size_t bytes = onode.memory_bytes() + kEntryOverheadBytes;
    shard.bytes = shard.bytes - onode.counted_bytes.exchange(bytes) + bytes;
    trim(shard, m_capacity_bytes / kShards);
  }
}

void OnodeCache::trim(Shard& shard, size_t capacity_bytes) {
  auto passed = shard.onodes.end();  // from here on all are in use
  unsigned passed_over = 0;
  while (shard.bytes > capacity_bytes && passed != shard.onodes.begin()) {
    const auto last = std::prev(passed);
    // Nobody can begin to use it meanwhile: that takes the shard's mutex.
    if ((*last)->use_count() > 1) {
      passed = last;
    } else if (std::exchange((*last)->looked_up, false) && passed_over < kPassedOverMax) {
      ++passed_over;
      shard.onodes.splice(shard.onodes.begin(), shard.onodes, last);
    } else {
      passed_over = 0;
      erase(shard, **last);
    }
  }
}

void OnodeCache::set_capacity(size_t bytes) {
  m_capacity_bytes = bytes;
  for (Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    trim(shard, bytes / kShards);
  }
}

size_t OnodeCache::memory_bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    bytes += shard.bytes;
  }
  return bytes;
}

size_t OnodeCache::size() const {
  size_t count = 0;
  for (const Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    count += shard.onodes.size();
  }
  return count;
}

void OnodeCache::clear() {
  for (Shard& shard : m_shards) {
    vtkv::MutexLock lock(shard.mutex);
    trim(shard, 0);
  }
}

}  // namespace swimstore
