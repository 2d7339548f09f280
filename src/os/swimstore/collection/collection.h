// SPDX-License-Identifier: LGPL-2.1-or-later
// A collection (placement group, or meta) and the table of all of them.
//
// Lock: a transaction holds `lock` of every collection it names uniquely, from before it plans what it does there until
// it is submitted; so per-collection order is sequence order. A reader holds it shared for the whole read, I/O
// included: that keeps the slots it resolved from being freed and written again.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "os/ObjectStore.h"

#include "swimstore/collection/op_sequencer.h"
#include "swimstore/collection/shared_mutex.h"
#include "swimstore/format/collection_record.h"
#include "vtkv/db.h"
#include "vtkv/util/mutex.h"

class ContextQueue;

namespace swimstore {

// What transactions have changed of a collection since its copy to another cube began, while it is in use
// (move/online_move.h). `hashes`: changed under the collection's unique lock, and read under it, shared or not.
struct CollectionChanges {
  std::unordered_set<uint32_t> hashes;  // of objects that a transaction named
  std::atomic<const char*> given_up{nullptr};  // why nothing more is noted, so that the copy is of no use
};

class Collection final : public ObjectStore::CollectionImpl {
 public:
  mutable SharedMutex lock;
  CollectionRecord record GUARDED_BY(lock);
  bool exists GUARDED_BY(lock) = false;  // false before mkcoll and after rmcoll
  std::atomic<ContextQueue*> commit_queue{nullptr};
  std::atomic<bool> is_published{false};  // CollectionTable::find() finds this one
  const OpSequencerRef sequencer;

  // Does the object's hash belong here? Everything belongs to a collection that is no PG's.
  bool contains(const ghobject_t& oid) const REQUIRES_SHARED(lock);
  // Are the object's pool and shard this collection's, temporary objects included? Says nothing of the hash.
  bool is_of_pool_of(const ghobject_t& oid) const;

  // A copy begins: from now on it is noted what changes.
  std::shared_ptr<CollectionChanges> begin_copy() REQUIRES(lock) {
    m_changes = std::make_shared<CollectionChanges>();
    return m_changes;
  }
  bool is_being_copied() const REQUIRES_SHARED(lock) { return m_changes != nullptr; }
  // It has ended, or cannot come to its end: what the collection is changes, too. Nothing, where there is none.
  void give_up_copy(const char* why) REQUIRES(lock);
  // A transaction names the object.
  void note_change(const ghobject_t& oid) REQUIRES(lock);

  void flush() override {}  // what was queued is visible already
  bool flush_commit(Context* context) override { return sequencer->flush_commit(context); }

 private:
  FRIEND_MAKE_REF(Collection);
  Collection(CephContext* cct, const coll_t& cid, OpSequencerRef sequencer);

  std::shared_ptr<CollectionChanges> m_changes GUARDED_BY(lock);  // null: it is not being copied
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
  ~CollectionTable();  // who keeps one of its collections finds out that it is of no use

  // Reads all collection records of a cube. To be called for each of the `cubes`, before anything else. Of two records
  // of a collection the one with the greater generation counts, and the other is appended to *outdated.
  vtkv::Status load(vtkv::DB& database, unsigned cube, unsigned cubes, std::vector<OutdatedRecord>* outdated);
  // Greater than any that a record has: one of the ids that `new_id` gives, ascending. Where these become durable with
  // the record, no generation comes twice. (What is read at a mount does not tell of records that are gone.)
  uint64_t new_generation(const std::function<uint64_t()>& new_id);
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
  bool has_prepared() const { return m_has_prepared; }
  void publish(const CollectionRef& collection);  // prepared -> found by find
  void withdraw(const coll_t& cid);  // not found any more

 private:
  vtkv::Status add(const coll_t& cid, CollectionRecord record, std::vector<OutdatedRecord>* outdated);
  OpSequencerRef sequencer_of(const coll_t& cid) REQUIRES(m_mutex);

  CephContext* const m_cct;
  vtkv::Env* const m_env;
  std::atomic<uint64_t> m_generation{0};
  std::atomic<bool> m_has_prepared{false};  // changed under m_mutex
  mutable SharedMutex m_mutex;
  std::map<coll_t, CollectionRef> m_collections GUARDED_BY(m_mutex);
  std::map<coll_t, CollectionRef> m_prepared GUARDED_BY(m_mutex);
  // Also of collections gone, while in use.
  std::map<coll_t, std::weak_ptr<OpSequencer>> m_sequencers GUARDED_BY(m_mutex);
};

// Where objects lie that a move in the background has copied and nobody owns yet, or that it has left behind: no new
// collection may lie there that would take them for its own, until they are removed.
//
// Thread-safe; free when there are none.
class UnownedCopies {
 public:
  // Those that the collection would have there. Before they can be there, and when they are gone.
  void add(unsigned cube, const coll_t& cid, uint32_t bits);
  void remove(unsigned cube, const coll_t& cid);
  // Some of them could be objects of a new placement group of this name, however many bits it gets.
  bool could_meet(unsigned cube, const coll_t& cid) const;
  // Of one with so many bits.
  bool meet(unsigned cube, const coll_t& cid, uint32_t bits) const;

 private:
  struct Range {
    unsigned cube = 0;
    spg_t group;
    uint32_t bits = 0;
  };

  mutable vtkv::Mutex m_mutex;
  std::atomic<bool> m_any{false};  // changed under m_mutex
  std::vector<Range> m_ranges GUARDED_BY(m_mutex);
};

}  // namespace swimstore
