// SPDX-License-Identifier: LGPL-2.1-or-later
// Turns the operations of ObjectStore transactions into one batch, slot writes and an allocation delta.
//
// Every operation takes effect on the onodes in memory at once, so later ones see earlier ones; finish()
// encodes what changed. The caller holds the unique locks of the collections that the transactions name, but for those
// that were left (collection/collection_locks.h), from before the constructor until the planner is destroyed: so long
// their objects are marked as changed.
//
// What sets or removes omap keys in a collection whose lock was left is put off until all else was read, compressed and
// encoded; then the lock is taken. Another operation there takes it at once, behind what was put off. Operations on
// objects of several collections do not depend on each other, and those on one collection keep their order.
//
// Which errors an operation may have is BlueStore's rule: an object that is not there is fine for those
// operations that may find it gone (remove, truncate, ...), not for those that need it (setattr, clone,
// omap writes); anything else ends the OSD.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "os/ObjectStore.h"

#include "swimstore/collection/collection_locks.h"
#include "swimstore/omap/omap_writer.h"
#include "swimstore/omap/witness_writer.h"
#include "swimstore/transaction/object_writer.h"
#include "swimstore/transaction/txn_plan.h"

namespace swimstore {

class TxnPlanner {
 public:
  // `locks`: null: the transaction has no operations.
  TxnPlanner(StoreContext& store, TxnContext& txn, CollectionLocks* locks);
  ~TxnPlanner();
  TxnPlanner(const TxnPlanner&) = delete;
  TxnPlanner& operator=(const TxnPlanner&) = delete;

  // 0, or the error that makes the transaction impossible (said in the log).
  int apply(ObjectStore::Transaction::iterator& transaction);
  // Fills the batch and the delta; then the transaction can be submitted. All locks are held.
  int finish();
  // Undoes everything in memory.
  void take_back();
  uint64_t operations() const { return m_operations; }
  // Of those that were applied, counted from 0, the one that is under way or cannot be carried out.
  size_t transaction() const { return m_transaction; }
  // Of the placement groups whose past it changes: written before the transaction is submitted, and after.
  WitnessWriter& witnesses() { return m_witnesses; }

  // ---- for transactions of the store's own, which have no operations (own_transaction.h)
  void touch(OnodeRef& onode, int64_t pool);  // creates it when it is not there
  int discard(OnodeRef& onode);  // with its data and its omap
  ObjectWriter& data() { return m_data; }
  TxnPlan& plan() { return m_plan; }

 private:
  using Transaction = ObjectStore::Transaction;

  // The objects and collections of the transaction being applied, by its own numbers.
  struct Names {
    std::vector<CollectionRef> collections;
    std::vector<OnodeRef> onodes;
  };
  // An operation on a collection whose lock is not held yet.
  struct PutOff {
    size_t transaction = 0;
    size_t position = 0;  // in it
    uint32_t op = 0;
    coll_t cid;
    ghobject_t oid;
    ceph::bufferlist keys;
  };

  std::span<const CollectionRef> held() const;
  // Again when more locks are held.
  void name(const Transaction::iterator& transaction);
  // Of an operation whose collection is not held. True: its turn comes later.
  bool put_off(const Transaction::Op& op, size_t position, Transaction::iterator& transaction);
  // Takes the locks that were left.
  int apply_put_off();
  int apply_later(const PutOff& later);
  int apply_operation(const Transaction::Op& op, Transaction::iterator& transaction);
  int change_keys(uint32_t op, Onode& onode, const ceph::bufferlist& keys);
  int refuse_from_elsewhere(uint32_t op, const Collection& collection, const Onode& onode)
      REQUIRES_SHARED(collection.lock);
  // Of those that changed, from the *first on.
  int encode_changed(size_t* first);
  int apply_collection_operation(const Transaction::Op& op, Transaction::iterator& transaction, bool* done);
  int apply_object_operation(const Transaction::Op& op, Transaction::iterator& transaction);
  int apply_to_object(const Transaction::Op& op, Transaction::iterator& transaction, Collection& collection,
                      OnodeRef& onode) REQUIRES(collection.lock);
  // Of a transaction that commits in another cube than the object's.
  int apply_from_elsewhere(const Transaction::Op& op, Transaction::iterator& transaction, Collection& collection,
                           Onode& onode) REQUIRES(collection.lock);
  int apply_to_omap(const Transaction::Op& op, Transaction::iterator& transaction, Onode& onode);
  int apply_to_two(const Transaction::Op& op, Transaction::iterator& transaction, Collection& collection,
                   OnodeRef& onode) REQUIRES(collection.lock);
  int find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) REQUIRES(collection.lock);

  // txn_planner_objects.cc
  int write(OnodeRef& onode, uint64_t offset, uint64_t length, ceph::bufferlist& data);
  int zero(OnodeRef& onode, uint64_t offset, uint64_t length);
  int truncate(OnodeRef& onode, uint64_t size);
  int remove(OnodeRef& onode);
  void set_attr(OnodeRef& onode, std::string name, ceph::bufferptr value);
  int clone(OnodeRef& source, OnodeRef& target, int64_t pool);
  int clone_range(OnodeRef& source, OnodeRef& target, int64_t pool, uint64_t source_offset, uint64_t length,
                  uint64_t target_offset);
  int rename(OnodeRef& source, OnodeRef& target, int64_t pool);
  int encode(TxnPlan::ChangedObject& changed);

  // txn_planner_collections.cc
  int create_collection(const coll_t& cid, uint32_t bits, CollectionRef* collection);
  int remove_collection(CollectionRef* collection);
  int split_collection(Collection& parent, Collection& child, uint32_t bits, uint32_t remainder)
      REQUIRES(parent.lock, child.lock);
  int set_collection_bits(Collection& collection, uint32_t bits) REQUIRES(collection.lock);
  int merge_collection(CollectionRef* source, Collection& target, uint32_t bits) REQUIRES(target.lock);
  int is_empty(const Collection& collection, bool* empty) REQUIRES(collection.lock);
  void put_record(Collection& collection) REQUIRES(collection.lock);
  uint64_t new_generation();
  void forget_collection(CollectionRef* collection) REQUIRES((*collection)->lock);

  struct CollectionBefore {
    CollectionRef collection;
    CollectionRecord record;
    bool exists;
  };
  void remember(Collection& collection) REQUIRES(collection.lock);

  TxnPlan m_plan;
  ObjectWriter m_data;
  OmapWriter m_omap;
  WitnessWriter m_witnesses;
  Names m_names;
  uint64_t m_operations = 0;
  size_t m_transaction = 0;
  std::vector<CollectionBefore> m_before;
  // The bits that the parent of a split had before the first of them, or since a merge.
  std::map<const Collection*, uint32_t> m_split_from;
  CollectionLocks* const m_locks;
  std::vector<PutOff> m_put_off;
};

}  // namespace swimstore
