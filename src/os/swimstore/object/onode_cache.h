// SPDX-License-Identifier: LGPL-2.1-or-later
// Onodes by name, bounded in bytes; least recently used go first, those in use never.
//
// Object names are unique over all collections (their keys hold none), so splits and merges do not
// touch the cache.
//
// Threads: every method may be called from any thread. Whoever looks up an object holds the lock of its
// collection.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <unordered_map>

#include "swimstore/object/onode.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class OnodeCache {
 public:
  OnodeCache(vtkv::DB& database, size_t capacity_bytes);

  // The object's onode, loaded when needed; exists == false when there is no such object. Fails only on
  // a damaged record or a read error.
  vtkv::Status find(const ghobject_t& oid, OnodeRef* onode);
  // Drops it, so that the next find loads it again. For a transaction that is taken back.
  void forget(const ghobject_t& oid);
  // Makes shards [first, last] of its extents present, or all, and counts their memory.
  vtkv::Status load_extents(Onode& onode, uint32_t first, uint32_t last);
  vtkv::Status load_all_extents(Onode& onode);
  // The onode was changed: count its memory again.
  void resized(const Onode& onode);

  void set_capacity(size_t bytes);
  size_t capacity() const { return m_capacity_bytes; }
  size_t memory_bytes() const;
  size_t size() const;
  void clear();  // drops what is not in use
  uint64_t hits() const { return m_hits; }
  uint64_t misses() const { return m_misses; }

 private:
  static constexpr size_t kShards = 16;
  struct Entry {
    OnodeRef onode;
    size_t bytes = 0;
  };
  struct Shard {
    mutable vtkv::Mutex mutex;
    std::list<Entry> entries GUARDED_BY(mutex);  // most recently used first
    std::unordered_map<ghobject_t, std::list<Entry>::iterator> by_name GUARDED_BY(mutex);
    size_t bytes GUARDED_BY(mutex) = 0;
  };

  Shard& shard_of(const ghobject_t& oid);
  void trim(Shard& shard, size_t capacity_bytes) REQUIRES(shard.mutex);
  void erase(Shard& shard, std::list<Entry>::iterator entry) REQUIRES(shard.mutex);
  vtkv::Status load(const ghobject_t& oid, OnodeRef* onode);
  vtkv::Status count_again(const Onode& onode, size_t extents_before, const vtkv::Status& loaded);

  vtkv::DB& m_database;
  std::atomic<size_t> m_capacity_bytes;
  std::array<Shard, kShards> m_shards;
  std::atomic<uint64_t> m_hits{0}, m_misses{0};
};

}  // namespace swimstore
