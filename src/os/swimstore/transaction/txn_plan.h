// SPDX-License-Identifier: LGPL-2.1-or-later
// What one transaction has changed so far: shared by those who plan its operations.
//
// Not thread-safe: one transaction's, under the unique locks of its collections.
#pragma once

#include <algorithm>
#include <vector>

#include "swimstore/object/store_context.h"
#include "swimstore/transaction/pool_usage_delta.h"
#include "swimstore/transaction/slot_delta.h"
#include "swimstore/transaction/txn_context.h"
#include "vtkv/util/invariants.h"

namespace swimstore {

struct TxnPlan {
  struct ChangedObject {
    OnodeRef onode;
    int64_t pool = 0;
    bool existed = false;      // before the transaction
    bool counts_data = false;  // tail_padding is valid
    uint32_t tail_padding = 0;  // before the transaction: bytes of the last block past the end
    std::vector<uint32_t> worn_shards;  // in which compressed blobs are worn
  };

  TxnPlan(StoreContext& store, TxnContext& txn) : store(store), home(txn.home()), txn(txn) {}

  // Registers the object, before its first change.
  ChangedObject& change(const OnodeRef& onode, int64_t pool) {
    if (onode->change == 0) {
      changed.push_back({onode, pool, onode->exists});
      onode->change = changed.size();
    }
    VTKV_ASSERT(onode->change <= changed.size() && changed[onode->change - 1].onode == onode);  // else another plan's
    return changed[onode->change - 1];
  }
  // An id that no object, write or generation has, which becomes durable with the transaction.
  uint64_t new_object_id() {
    const uint64_t id = home.cube.new_object_id();
    object_ids_end = std::max(object_ids_end, id + 1);
    return id;
  }
  vtkv::WriteBatch& batch() { return txn.batch; }
  vtkv::DB& database() { return home.database(); }

  StoreContext& store;
  StoreCube& home;  // that it commits in
  TxnContext& txn;
  SlotDelta slots;
  PoolUsageDelta usage;
  std::vector<ChangedObject> changed;
  uint64_t object_ids_end = 0;  // above every id taken; 0: none taken
  uint32_t fadvise_flags = 0;  // of the transaction: CEPH_OSD_OP_FLAG_FADVISE_*
};

// The pool a collection's bytes are counted for; -1 for collections of no PG.
inline int64_t pool_of(const coll_t& cid) {
  spg_t pgid;
  return cid.is_pg(&pgid) ? static_cast<int64_t>(pgid.pool()) : -1;
}
inline int64_t pool_of(const Collection& collection) { return pool_of(collection.cid); }

}  // namespace swimstore
