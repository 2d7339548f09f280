// SPDX-License-Identifier: LGPL-2.1-or-later
// A collection (placement group, or meta) and the table of all of them.
//
// Lock: a transaction holds `lock` of every collection it names uniquely, from planning until it is
// submitted; so per-collection order is sequence order. A reader holds it shared for the whole read, I/O
// included: that keeps the slots it resolved from being freed and written again.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "os/ObjectStore.h"

#include "swimstore/format/collection_record.h"
#include "swimstore/collection/op_sequencer.h"
#include "swimstore/collection/shared_mutex.h"
#include "vtkv/db.h"

class ContextQueue;

namespace swimstore {

class Collection final : public ObjectStore::CollectionImpl {
 public:
  mutable SharedMutex lock;
  CollectionRecord record GUARDED_BY(lock);
  bool exists GUARDED_BY(lock) = false;  // false before mkcoll and after rmcoll
  std::atomic<ContextQueue*> commit_queue{nullptr};
  const OpSequencerRef sequencer;

  // Does the object's hash belong here? Everything belongs to a collection that is no PG's.
  bool contains(const ghobject_t& oid) const REQUIRES_SHARED(lock);
  // Are the object's pool and shard this collection's, temporary objects included? Says nothing of the hash.
  bool is_of_pool_of(const ghobject_t& oid) const;

  void flush() override {}  // what was queued is visible already
  bool flush_commit(Context* context) override { return sequencer->flush_commit(context); }

 private:
  FRIEND_MAKE_REF(Collection);
  Collection(CephContext* cct, const coll_t& cid, OpSequencerRef sequencer);

  spg_t m_pgid;  // set by the constructor
  const bool m_is_pg;
};

using CollectionRef = ceph::ref_t<Collection>;

// What a cube says of a collection that another cube has a record of with a greater generation: it moved there.
struct OutdatedRecord {
  coll_t cid;
  unsigned cube = 0;
  uint32_t bits = 0;
};

// Thread-safe.
class CollectionTable {
 public:
  CollectionTable(CephContext* cct, vtkv::Env* env) : m_cct(cct), m_env(env) {}

  // Reads all collection records of a cube; once for each of so many cubes, before anything else. Of two records of a
  // collection the one with the greater generation counts, and the other is appended to *outdated.
  vtkv::Status load(vtkv::DB& database, unsigned cube, unsigned cubes, std::vector<OutdatedRecord>* outdated);
  // Greater than any that a record has.
  uint64_t new_generation() { return ++m_generation; }
  CollectionRef find(const coll_t& cid) const;  // null when there is none
  // The collection that an object of this name lies in; null when there is none.
  CollectionRef find_owner(const ghobject_t& oid) const;
  // For a collection that a transaction will create; see ObjectStore::create_new_collection.
  CollectionRef prepare(const coll_t& cid);
  std::vector<coll_t> list() const;
  std::vector<CollectionRef> all() const;
  void set_commit_queue(const coll_t& cid, ContextQueue* queue);

  // ---- the planner's ----
  CollectionRef find_prepared(const coll_t& cid) const;  // null when prepare was not called
  void publish(const CollectionRef& collection);  // prepared -> found by find
  void withdraw(const coll_t& cid);  // not found any more

 private:
  vtkv::Status add(const coll_t& cid, CollectionRecord record, std::vector<OutdatedRecord>* outdated);
  OpSequencerRef sequencer_of(const coll_t& cid) REQUIRES(m_mutex);

  CephContext* const m_cct;
  vtkv::Env* const m_env;
  std::atomic<uint64_t> m_generation{0};
  mutable SharedMutex m_mutex;
  std::map<coll_t, CollectionRef> m_collections GUARDED_BY(m_mutex);
  std::map<coll_t, CollectionRef> m_prepared GUARDED_BY(m_mutex);
  // Also of collections gone, while in use.
  std::map<coll_t, std::weak_ptr<OpSequencer>> m_sequencers GUARDED_BY(m_mutex);
};

}  // namespace swimstore
