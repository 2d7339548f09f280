// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/txn_planner.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "common/debug.h"

#include "swimstore/object/collection_list.h"

#define dout_context m_plan.store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.plan "

namespace swimstore {

void TxnPlanner::remember(Collection& collection) {
  collection.give_up_copy("the collection was split, merged or removed");
  m_before.push_back({CollectionRef(&collection), collection.record, collection.exists});
}

void TxnPlanner::put_record(Collection& collection) {
  m_plan.batch().put(collection_key(collection.cid), encode_collection(collection.record));
  m_witnesses.set_group(collection.cid, collection.record.bits);
}

uint64_t TxnPlanner::new_generation() {
  return m_plan.store.cubes.size() > 1
             ? m_plan.store.collections.new_generation([this] { return m_plan.new_object_id(); })
             : 0;
}

int TxnPlanner::create_collection(const coll_t& cid, uint32_t bits, CollectionRef* collection) {
  if (*collection) {
    return -EEXIST;
  }
  for (const CollectionRef& locked : held()) {
    if (locked->cid == cid && m_plan.store.collections.find_prepared(cid) == locked) {
      *collection = locked;
    }
  }
  if (!*collection || bits > kHashBits) {
    derr << "collection " << cid << " with " << bits << " bits cannot be created: "
         << (*collection ? "a hash has 32 bits" : "create_new_collection was not called for it") << dendl;
    collection->reset();
    return -EINVAL;
  }
  (*collection)->lock.assert_held();
  remember(**collection);
  spg_t pgid;
  const uint32_t hash = cid.is_pg(&pgid) ? pgid.ps() : 0;
  (*collection)->record = CollectionRecord(hash, bits, m_plan.home.number, new_generation());
  (*collection)->exists = true;
  m_plan.store.collections.publish(*collection);
  put_record(**collection);
  return 0;
}

int TxnPlanner::remove_collection(CollectionRef* collection) {
  if (!*collection) {
    return -ENOENT;
  }
  (*collection)->lock.assert_held();
  bool empty = false;
  const int r = is_empty(**collection, &empty);
  if (r < 0) {
    return r;
  }
  if (!empty) {
    return -ENOTEMPTY;
  }
  remember(**collection);
  forget_collection(collection);
  return 0;
}

// What the tree has, corrected by what this transaction does.
int TxnPlanner::is_empty(const Collection& collection, bool* empty) {
  *empty = true;
  const std::vector<ObjectRange> ranges = object_ranges(collection.cid, collection.record.bits);
  std::unordered_set<std::string_view> changed_keys;
  for (const TxnPlan::ChangedObject& changed : m_plan.changed) {
    changed_keys.insert(changed.onode->key);
    for (const ObjectRange& range : ranges) {
      const ghobject_t& oid = changed.onode->oid;
      if (changed.onode->exists && range.begin <= oid && oid < range.end) {
        *empty = false;
        return 0;
      }
    }
  }
  for (const ObjectRange& range : ranges) {
    const auto iterator = m_plan.database().new_iterator(object_key(range.begin), object_key(range.end));
    for (iterator->seek_to_first(); iterator->valid(); iterator->next()) {
      if (!changed_keys.contains(iterator->key())) {
        ghobject_t oid;
        decode_object_key(iterator->key(), &oid);
        derr << "collection " << collection.cid << " is not empty: it holds " << oid << dendl;
        *empty = false;
        return 0;
      }
    }
    if (!iterator->status().ok()) {
      return m_plan.store.metadata_failure.met(m_plan.home.number, iterator->status(), "the list of collection ",
                                               collection.cid);
    }
  }
  return 0;
}

void TxnPlanner::forget_collection(CollectionRef* collection) {
  m_plan.batch().remove(collection_key((*collection)->cid));
  m_witnesses.remove((*collection)->cid);
  (*collection)->exists = false;
  m_plan.store.collections.withdraw((*collection)->cid);
  m_split_from.erase(collection->get());
  collection->reset();
}

// An OSD says it of one child after the other, in the order of their numbers. Where the pool gets a number of groups
// that is no power of two the children differ in bits, and so do what it says of the parent, which ends with the most
// of them: what no child has is the parent's.
int TxnPlanner::split_collection(Collection& parent, Collection& child, uint32_t bits, uint32_t remainder) {
  spg_t parent_pg, child_pg;
  if (!parent.cid.is_pg(&parent_pg) || !child.cid.is_pg(&child_pg) || child.record.bits != bits ||
      bits < m_split_from.try_emplace(&parent, parent.record.bits).first->second || child_pg.ps() != remainder) {
    derr << "collection " << parent.cid << " (" << parent.record.bits << " bits) cannot be split into " << child.cid
         << " (" << child.record.bits << " bits) at " << bits << " bits, remainder " << remainder << dendl;
    return -EINVAL;
  }
  remember(parent);
  // Objects carry no collection: which of them are the child's follows from the bits.
  parent.record.bits = std::max(parent.record.bits, bits);
  parent.record.hash_ranges = {{parent_pg.ps(), parent.record.bits, m_plan.home.number}};
  put_record(parent);
  return 0;
}

// An OSD says it once more after merges, and alone where a PG to be merged was never created.
int TxnPlanner::set_collection_bits(Collection& collection, uint32_t bits) {
  spg_t pg;
  if (!collection.cid.is_pg(&pg) || bits > collection.record.bits) {
    derr << "collection " << collection.cid << " (" << collection.record.bits << " bits) cannot get " << bits
         << " bits: it would lose objects" << dendl;
    return -EINVAL;
  }
  remember(collection);
  m_split_from.erase(&collection);
  if (bits < collection.record.bits) {  // of two records that have what it gets, its own is the newer one
    collection.record.generation = new_generation();
  }
  collection.record.bits = bits;
  collection.record.hash_ranges = {{pg.ps(), bits, m_plan.home.number}};
  put_record(collection);
  return 0;
}

int TxnPlanner::merge_collection(CollectionRef* source, Collection& target, uint32_t bits) {
  spg_t source_pg, target_pg;
  if (!(*source)->cid.is_pg(&source_pg) || !target.cid.is_pg(&target_pg) || bits > target.record.bits) {
    derr << "collection " << (*source)->cid << " cannot be merged into " << target.cid << " (" << target.record.bits
         << " bits) at " << bits << " bits" << dendl;
    return -EINVAL;
  }
  (*source)->lock.assert_held();
  remember(**source);
  remember(target);
  m_split_from.erase(&target);
  target.record = CollectionRecord(target_pg.ps(), bits, m_plan.home.number, new_generation());
  put_record(target);
  // Its order is kept: this transaction comes after all of the source's, and the target's flush_commit
  // waits for this one.
  forget_collection(source);
  return 0;
}

}  // namespace swimstore
