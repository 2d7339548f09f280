// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/transaction/txn_planner.h"

#include <sstream>
#include <utility>

#include "common/debug.h"
#include "common/errno.h"

#include "swimstore/format/witness.h"
#include "swimstore/omap/omap_contents.h"

#define dout_context m_plan.store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.plan "

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

bool creates_object(uint32_t op) {
  return op == Transaction::OP_TOUCH || op == Transaction::OP_CREATE || op == Transaction::OP_WRITE ||
         op == Transaction::OP_ZERO;
}

bool needs_object(uint32_t op) {
  switch (op) {
    case Transaction::OP_CLONE:
    case Transaction::OP_CLONERANGE:
    case Transaction::OP_CLONERANGE2:
    case Transaction::OP_COLL_ADD:
    case Transaction::OP_SETATTR:
    case Transaction::OP_SETATTRS:
    case Transaction::OP_RMATTR:
    case Transaction::OP_OMAP_SETKEYS:
    case Transaction::OP_OMAP_RMKEYS:
    case Transaction::OP_OMAP_RMKEYRANGE:
    case Transaction::OP_OMAP_SETHEADER:
      return true;
    default:
      return false;
  }
}

bool is_tolerated(uint32_t op, int r) { return r >= 0 || r == -ENODATA || (r == -ENOENT && !needs_object(op)); }

// Those that an operation sets or removes in an omap; false: it does neither.
bool decode_keys(const Transaction::Op& op, Transaction::iterator& transaction, ceph::bufferlist* keys) {
  switch (op.op) {
    case Transaction::OP_OMAP_SETKEYS:
      transaction.decode_attrset_bl(keys);
      return true;
    case Transaction::OP_OMAP_RMKEYS:
      transaction.decode_keyset_bl(keys);
      return true;
    default:
      return false;
  }
}

// Omap itself is not in the onode's record, only whether there is any.
bool changes_omap_only(uint32_t op, const Onode& onode) {
  switch (op) {
    case Transaction::OP_OMAP_SETKEYS:
    case Transaction::OP_OMAP_SETHEADER:
      return onode.has_omap();
    case Transaction::OP_OMAP_CLEAR:
      return !onode.has_omap() || onode.has_omap_in_parts();
    case Transaction::OP_OMAP_RMKEYS:
    case Transaction::OP_OMAP_RMKEYRANGE:
      return true;
    default:
      return false;
  }
}

// Of a placement group: what other OSDs are told of its past, and must find again.
bool tells_of_peering(const ghobject_t& oid, const ceph::bufferlist& encoded_keys) {
  if (oid.is_pgmeta()) {
    OmapArguments arguments(encoded_keys);
    for (std::string_view key, value; arguments.next(&key, &value);) {
      if (is_witnessed(key)) {
        return true;
      }
    }
  }
  return false;
}

// What the operation is on; for the log.
std::string name_of(const Transaction::Op& op, const Transaction::iterator& transaction) {
  std::ostringstream text;
  if (op.cid < transaction.colls.size()) {
    text << transaction.colls[op.cid];
  }
  if (op.oid < transaction.objects.size()) {
    text << " " << transaction.objects[op.oid];
  }
  return text.str();
}

}  // namespace

TxnPlanner::TxnPlanner(StoreContext& store, TxnContext& txn, CollectionLocks* locks)
    : m_plan(store, txn),
      m_data(m_plan),
      m_omap({store, txn.home(), txn.batch, txn.removed_rows, [this] { return m_plan.new_object_id(); }}),
      m_witnesses(store, txn.home()),
      m_locks(locks) {}

TxnPlanner::~TxnPlanner() {
  for (const TxnPlan::ChangedObject& changed : m_plan.changed) {
    changed.onode->change = 0;
  }
}

std::span<const CollectionRef> TxnPlanner::held() const {
  return m_locks != nullptr ? m_locks->held() : std::span<const CollectionRef>();
}

void TxnPlanner::name(const Transaction::iterator& transaction) {
  m_names.onodes.assign(transaction.objects.size(), OnodeRef());
  m_names.collections.assign(transaction.colls.size(), CollectionRef());
  for (size_t i = 0; i < transaction.colls.size(); ++i) {
    for (const CollectionRef& collection : held()) {
      collection->lock.assert_held();
      if (collection->exists && collection->cid == transaction.colls[i]) {
        m_names.collections[i] = collection;
      }
    }
  }
}

int TxnPlanner::apply(Transaction::iterator& transaction) {
  m_plan.fadvise_flags |= transaction.get_fadvise_flags();
  name(transaction);
  for (size_t position = 0; transaction.have_op(); ++position) {
    const Transaction::Op* const op = transaction.decode_op();
    ++m_operations;
    dout(10) << "operation " << op->op << " " << name_of(*op, transaction) << " " << op->off << "~" << op->len << dendl;
    if (op->op != Transaction::OP_NOP && !m_names.collections[op->cid] &&
        m_locks->is_left(transaction.colls[op->cid])) {
      if (put_off(*op, position, transaction)) {
        continue;
      }
      if (const int r = apply_put_off(); r < 0) {
        return r;
      }
      name(transaction);
    }
    if (const int r = apply_operation(*op, transaction); r < 0) {
      derr << "operation " << op->op << " (number " << position
           << " of its transaction, counting from 0) fails: " << cpp_strerror(r) << dendl;
      return r;
    }
  }
  ++m_transaction;
  return 0;
}

bool TxnPlanner::put_off(const Transaction::Op& op, size_t position, Transaction::iterator& transaction) {
  ceph::bufferlist keys;
  if (!decode_keys(op, transaction, &keys)) {
    return false;
  }
  m_put_off.push_back(
      {m_transaction, position, op.op, transaction.get_cid(op.cid), transaction.get_oid(op.oid), std::move(keys)});
  return true;
}

int TxnPlanner::apply_put_off() {
  m_locks->take_rest();
  const size_t under_way = m_transaction;
  for (const PutOff& later : m_put_off) {
    m_transaction = later.transaction;
    if (const int r = apply_later(later); r < 0) {
      derr << "operation " << later.op << " " << later.cid << " " << later.oid << " (number " << later.position
           << " of its transaction, counting from 0) fails: " << cpp_strerror(r) << dendl;
      return r;
    }
  }
  m_put_off.clear();
  m_transaction = under_way;
  return 0;
}

int TxnPlanner::apply_later(const PutOff& later) {
  for (const CollectionRef& collection : held()) {
    collection->lock.assert_held();
    if (!collection->exists || collection->cid != later.cid) {
      continue;
    }
    OnodeRef onode;
    if (const int r = find(*collection, later.oid, &onode); r < 0) {
      return r;
    }
    if (!onode->exists) {
      return -ENOENT;
    }
    if (m_plan.store.home(*collection).number == m_plan.home.number) {
      if (!changes_omap_only(later.op, *onode)) {
        touch(onode, pool_of(*collection));
      }
    } else if (!onode->has_omap_in_parts()) {
      return refuse_from_elsewhere(later.op, *collection, *onode);
    }
    return change_keys(later.op, *onode, later.keys);
  }
  derr << "collection " << later.cid << " does not exist" << dendl;
  return -EINVAL;
}

// 0, also where its error is tolerated.
int TxnPlanner::apply_operation(const Transaction::Op& op, Transaction::iterator& transaction) {
  bool done = op.op == Transaction::OP_NOP;
  const int r = done ? 0 : apply_collection_operation(op, transaction, &done);
  if (done && op.op != Transaction::OP_NOP && op.op != Transaction::OP_COLL_HINT) {
    m_plan.txn.forbid_relaxed();
  }
  if (done || r < 0) {
    return r;
  }
  const int of_object = apply_object_operation(op, transaction);
  return is_tolerated(op.op, of_object) ? 0 : of_object;
}

int TxnPlanner::apply_collection_operation(const Transaction::Op& op, Transaction::iterator& transaction, bool* done) {
  *done = true;
  CollectionRef& collection = m_names.collections[op.cid];
  switch (op.op) {
    case Transaction::OP_MKCOLL:
      return create_collection(transaction.get_cid(op.cid), op.split_bits, &collection);
    case Transaction::OP_RMCOLL:
      return remove_collection(&collection);
    case Transaction::OP_SPLIT_COLLECTION2: {
      const CollectionRef& child = m_names.collections[op.dest_cid];
      if (!collection || !child) {
        return -ENOENT;
      }
      collection->lock.assert_held();
      child->lock.assert_held();
      return split_collection(*collection, *child, op.split_bits, op.split_rem);
    }
    case Transaction::OP_MERGE_COLLECTION: {
      const CollectionRef& target = m_names.collections[op.dest_cid];
      if (!collection || !target) {
        return -ENOENT;
      }
      target->lock.assert_held();
      return merge_collection(&collection, *target, op.split_bits);
    }
    case Transaction::OP_COLL_HINT: {
      ceph::bufferlist hint;
      transaction.decode_bl(hint);  // about the number of objects: nothing here depends on it
      return 0;
    }
    case Transaction::OP_COLL_SET_BITS:
      if (!collection) {
        return -ENOENT;
      }
      collection->lock.assert_held();
      return set_collection_bits(*collection, op.split_bits);
    case Transaction::OP_COLL_SETATTR:
    case Transaction::OP_COLL_RMATTR:
    case Transaction::OP_COLL_SETATTRS:
    case Transaction::OP_COLL_RENAME:
    case Transaction::OP_SPLIT_COLLECTION:
    case Transaction::OP_COLL_ADD:
    case Transaction::OP_COLL_REMOVE:
    case Transaction::OP_COLL_MOVE:
    case Transaction::OP_CLONERANGE:
      derr << "operation " << op.op << " is one of FileStore's that no OSD of this release sends" << dendl;
      return -EOPNOTSUPP;
    default:
      *done = false;
      return 0;
  }
}

int TxnPlanner::find(Collection& collection, const ghobject_t& oid, OnodeRef* onode) {
  if (!collection.contains(oid)) {
    derr << "object " << oid << " does not belong to collection " << collection.cid << dendl;
    return -EINVAL;
  }
  collection.note_change(oid);
  const vtkv::Status status = m_plan.store.home(collection).onodes.find(oid, onode);
  if (!status.ok()) {
    return m_plan.store.metadata_failure.met(m_plan.store.home(collection).number, status, "object ", oid);
  }
  return 0;
}

int TxnPlanner::apply_object_operation(const Transaction::Op& op, Transaction::iterator& transaction) {
  const CollectionRef& collection = m_names.collections[op.cid];
  if (!collection) {
    derr << "collection " << transaction.get_cid(op.cid) << " does not exist" << dendl;
    return -EINVAL;
  }
  collection->lock.assert_held();
  OnodeRef& onode = m_names.onodes[op.oid];
  if (!onode) {
    const int r = find(*collection, transaction.get_oid(op.oid), &onode);
    if (r < 0) {
      return r;
    }
  }
  if (!onode->exists && !creates_object(op.op)) {
    return -ENOENT;  // operations that tolerate it have no arguments in the transaction's data
  }
  return apply_to_object(op, transaction, *collection, onode);
}

int TxnPlanner::apply_to_object(const Transaction::Op& op, Transaction::iterator& transaction, Collection& collection,
                                OnodeRef& onode) {
  if (m_plan.store.home(collection).number != m_plan.home.number) {
    return apply_from_elsewhere(op, transaction, collection, *onode);
  }
  const int64_t pool = pool_of(collection);
  switch (op.op) {
    case Transaction::OP_TRIMCACHE:
      return 0;
    case Transaction::OP_COLL_MOVE_RENAME:
    case Transaction::OP_TRY_RENAME:
    case Transaction::OP_CLONE:
    case Transaction::OP_CLONERANGE2:
      return apply_to_two(op, transaction, collection, onode);
    default:
      break;
  }
  if (changes_omap_only(op.op, *onode)) {
    return apply_to_omap(op, transaction, *onode);
  }
  touch(onode, pool);
  switch (op.op) {
    case Transaction::OP_CREATE:
    case Transaction::OP_TOUCH:
      return 0;
    case Transaction::OP_WRITE: {
      ceph::bufferlist data;
      transaction.decode_bl(data);
      return write(onode, op.off, op.len, data);
    }
    case Transaction::OP_ZERO:
      return zero(onode, op.off, op.len);
    case Transaction::OP_TRUNCATE:
      return truncate(onode, op.off);
    case Transaction::OP_REMOVE:
      return remove(onode);
    case Transaction::OP_SETATTR: {
      std::string name = transaction.decode_string();
      ceph::bufferlist encoded;
      transaction.decode_bl(encoded);
      // Tentacle decodes no pointer. A copy, which does not keep all of the transaction in memory.
      ceph::bufferptr value;
      encoded.cbegin().copy_deep(encoded.length(), value);
      set_attr(onode, std::move(name), std::move(value));
      return 0;
    }
    case Transaction::OP_SETATTRS: {
      // By way of a list of their own: decoding a map in place copies all that follows in the transaction.
      ceph::bufferlist encoded;
      transaction.decode_attrset_bl(&encoded);
      std::map<std::string, ceph::bufferptr> attrs;
      auto from = encoded.cbegin();
      ceph::decode(attrs, from);
      for (auto& [name, value] : attrs) {
        set_attr(onode, name, std::move(value));
      }
      return 0;
    }
    case Transaction::OP_RMATTR:
      onode->record.attrs.erase(transaction.decode_string());
      return 0;
    case Transaction::OP_RMATTRS:
      onode->record.attrs.clear();
      return 0;
    case Transaction::OP_SETALLOCHINT:
      onode->record.expected_object_size = op.expected_object_size;
      onode->record.expected_write_size = op.expected_write_size;
      onode->record.alloc_hint_flags = op.hint;
      onode->record.set(OnodeRecord::has_hints, true);
      return 0;
    default:
      return apply_to_omap(op, transaction, *onode);
  }
}

int TxnPlanner::apply_from_elsewhere(const Transaction::Op& op, Transaction::iterator& transaction,
                                     Collection& collection, Onode& onode) {
  switch (op.op) {
    case Transaction::OP_TRIMCACHE:
      return 0;
    case Transaction::OP_TOUCH:
    case Transaction::OP_CREATE:
      if (onode.exists) {
        return 0;
      }
      break;
    case Transaction::OP_OMAP_SETKEYS:
    case Transaction::OP_OMAP_RMKEYS:
      if (onode.has_omap_in_parts()) {
        return apply_to_omap(op, transaction, onode);
      }
      break;
    default:
      break;
  }
  return refuse_from_elsewhere(op.op, collection, onode);
}

int TxnPlanner::refuse_from_elsewhere(uint32_t op, const Collection& collection, const Onode& onode) {
  derr << "operation " << op << " on object " << onode.oid << " of collection " << collection.cid
       << " cannot be part of this transaction, which commits in cube " << m_plan.home.number
       << ": the object lies in cube " << m_plan.store.home(collection).number
       << ", and no transaction spans cubes. Of what exists in collection " << coll_t::meta()
       << ", omap keys can be set and removed, nothing else" << dendl;
  return -EOPNOTSUPP;
}

int TxnPlanner::change_keys(uint32_t op, Onode& onode, const ceph::bufferlist& keys) {
  if (op == Transaction::OP_OMAP_RMKEYS) {
    return m_omap.remove(onode, keys);
  }
  if (m_plan.txn.may_relax() && tells_of_peering(onode.oid, keys)) {
    m_plan.txn.forbid_relaxed();
  }
  m_witnesses.set_keys(onode.oid, keys);
  return m_omap.set(onode, keys);
}

int TxnPlanner::apply_to_omap(const Transaction::Op& op, Transaction::iterator& transaction, Onode& onode) {
  ceph::bufferlist argument;
  if (decode_keys(op, transaction, &argument)) {
    return change_keys(op.op, onode, argument);
  }
  switch (op.op) {
    case Transaction::OP_OMAP_CLEAR:
      return m_omap.clear(onode);
    case Transaction::OP_OMAP_RMKEYRANGE: {
      const std::string first = transaction.decode_string();
      const std::string last = transaction.decode_string();
      return m_omap.remove_range(onode, first, last);
    }
    case Transaction::OP_OMAP_SETHEADER:
      transaction.decode_bl(argument);
      m_omap.set_header(onode, argument);
      return 0;
    default:
      derr << "operation " << op.op << " is unknown" << dendl;
      return -EOPNOTSUPP;
  }
}

int TxnPlanner::apply_to_two(const Transaction::Op& op, Transaction::iterator& transaction, Collection& collection,
                             OnodeRef& onode) {
  const bool renames = op.op == Transaction::OP_COLL_MOVE_RENAME || op.op == Transaction::OP_TRY_RENAME;
  if (renames && op.cid != op.dest_cid) {
    derr << "object " << onode->oid << " cannot be renamed into another collection, "
         << transaction.get_cid(op.dest_cid) << dendl;
    return -EINVAL;
  }
  OnodeRef& other = m_names.onodes[op.dest_oid];
  if (!other) {
    const int r = find(collection, transaction.get_oid(op.dest_oid), &other);
    if (r < 0) {
      return r;
    }
  }
  const int64_t pool = pool_of(collection);
  if (renames) {
    return rename(onode, other, pool);
  }
  if (op.op == Transaction::OP_CLONE) {
    if (onode->oid.hobj.get_hash() != other->oid.hobj.get_hash()) {
      derr << "object " << onode->oid << " cannot be cloned to " << other->oid << ": their hashes differ" << dendl;
      return -EINVAL;
    }
    return clone(onode, other, pool);
  }
  return clone_range(onode, other, pool, op.off, op.len, op.dest_off);
}

int TxnPlanner::encode_changed(size_t* first) {
  for (; *first < m_plan.changed.size(); ++*first) {
    if (const int r = encode(m_plan.changed[*first]); r < 0) {
      return r;
    }
  }
  return 0;
}

int TxnPlanner::finish() {
  size_t encoded = 0;
  if (const int r = encode_changed(&encoded); r < 0) {
    return r;
  }
  std::vector<std::string> contradictions;
  const vtkv::Status status = m_plan.slots.settle(m_plan.home.cube, &m_plan.batch(), &m_plan.txn.delta.allocation,
                                                  &m_plan.usage, &contradictions);
  for (const std::string& contradiction : contradictions) {
    derr << contradiction << ": it is left as it is; check the store with ceph-swimstore-tool fsck, and repair it"
         << dendl;
  }
  if (!status.ok()) {
    return m_plan.store.metadata_failure.met(m_plan.home.number, status, "the references of slots");
  }
  for (const SlotBlocks& blocks : m_plan.txn.delta.allocation.freed) {
    m_plan.home.data.forget(blocks.slot, blocks.first, blocks.count);  // nobody reads them any more
  }
  if (m_locks != nullptr) {
    int r = apply_put_off();
    r = r < 0 ? r : encode_changed(&encoded);
    if (r < 0) {
      return r;
    }
  }
  m_plan.usage.add_to(&m_plan.txn.delta.pools);
  m_plan.txn.delta.next_object_id = m_plan.object_ids_end;
  return 0;
}

void TxnPlanner::take_back() {
  for (const TxnPlan::ChangedObject& changed : m_plan.changed) {
    m_plan.home.onodes.forget(changed.onode->oid);
  }
  for (auto before = m_before.rbegin(); before != m_before.rend(); ++before) {
    const CollectionRef& collection = before->collection;
    collection->lock.assert_held();
    collection->record = before->record;
    collection->exists = before->exists;
    if (before->exists) {
      m_plan.store.collections.publish(collection);
    } else {
      m_plan.store.collections.withdraw(collection->cid);
    }
  }
  m_plan.txn.take_back();
}

}  // namespace swimstore
