// SPDX-License-Identifier: LGPL-2.1-or-later
// Onodes by name, bounded in bytes. Those in use stay. Of the others the oldest goes first, but what was looked up
// since it was last considered has another round (CLOCK: Corbato, A Paging Experiment with the Multics System, 1968);
// of a few at a time, so that who needs room does not pass over all of them.
// So a hit touches nothing but the onode, which its reader needs anyway: with millions of objects each other line of
// memory is a miss of the processor's caches.
//
// Object names are unique over all collections (their keys hold none), so splits and merges do not
// touch the cache.
//
// Threads: every method may be called from any thread. Whoever looks up an object holds the lock of its
// collection, shared or not. No lock of the cache is held while the database is read.
//
// Why no old state of an object is ever in the cache:
// * Who changes an object does so in the onode that find() gave, and refers to it until the change was submitted,
//   so trim() leaves it there (forget() drops one whose change is never submitted). So at any time the cache has the
//   object's newest onode, or none, and in that case the database has its newest record. (When the database has
//   stopped, a submitted change is in neither: the process is about to end.)
// * A change needs the collection's lock alone, a load holds it at least shared: while one reads the database, only
//   other readers' onodes of the same record can enter. The first one that did is taken by all.
#pragma once

#include <array>
#include <atomic>
#include <list>

#include <boost/unordered/unordered_flat_set.hpp>

#include "swimstore/object/onode.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class OnodeCache {
 public:
  OnodeCache(vtkv::DB& database, size_t capacity_bytes);

  // `once`: by who goes through all objects; what was not in the cache before is the first to go again.
  enum class Use { again, once };

  // The object's onode, loaded when needed; exists == false when there is no such object. Fails only on
  // a damaged record or a read error. Of several at once that miss the same object each may read it; all get one onode.
  vtkv::Status find(const ghobject_t& oid, OnodeRef* onode, Use use = Use::again);
  // Drops it, so that the next find loads it again. For a transaction that is taken back.
  void forget(const ghobject_t& oid);
  // Makes shards [first, last] of its extents present, and counts their memory: see ExtentMap::load().
  vtkv::Status load_extents(Onode& onode, uint32_t first, uint32_t last);
  vtkv::Status load_all_extents(Onode& onode) { return load_extents(onode, 0, UINT32_MAX); }
  // The onode was changed: count its memory again. Free of locks where it is as large as before.
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
  struct Name {
    explicit Name(const ghobject_t& oid) : hash(std::hash<ghobject_t>()(oid)), oid(oid) {}
    size_t hash;
    const ghobject_t& oid;
  };
  // With the hash: the table grows, and passes over others, without a look at their onodes.
  struct Entry {
    size_t hash;
    Onode* onode;  // a list refers to it
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const auto& entry) const { return entry.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a.onode == b.onode; }
    bool operator()(const Name& a, const Entry& b) const { return a.hash == b.hash && a.oid == b.onode->oid; }
  };
  struct Shard {
    mutable vtkv::Mutex mutex;
    std::list<OnodeRef> onodes GUARDED_BY(mutex);  // the newest first
    boost::unordered_flat_set<Entry, Hash, Equal> by_name GUARDED_BY(mutex);
    size_t bytes GUARDED_BY(mutex) = 0;
  };

  Shard& shard_of(const ghobject_t& oid);
  // False: it is not there.
  bool take_cached(Shard& shard, const Name& name, OnodeRef* onode, Use use) REQUIRES(shard.mutex);
  void trim(Shard& shard, size_t capacity_bytes) REQUIRES(shard.mutex);
  void erase(Shard& shard, Onode& onode) REQUIRES(shard.mutex);
  vtkv::Status load(const ghobject_t& oid, OnodeRef* onode) const;

  vtkv::DB& m_database;
  std::atomic<size_t> m_capacity_bytes;
  std::array<Shard, kShards> m_shards;
  std::atomic<uint64_t> m_hits{0}, m_misses{0};
};

}  // namespace swimstore
