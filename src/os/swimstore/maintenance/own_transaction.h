// SPDX-License-Identifier: LGPL-2.1-or-later
// A transaction that the store makes by itself, in any cube, of the objects of one collection: planned as those of the
// OSD are, but let in at once, and nobody is called back. Whoever makes many of them bounds by himself what is under
// way: CommitThrottle and SpaceGate wait, which nobody does who holds a collection's lock.
//
// Not thread-safe.
#pragma once

#include "swimstore/transaction/txn_context.h"
#include "swimstore/transaction/txn_planner.h"

namespace swimstore {

class TransactionPipeline;

class OwnTransaction {
 public:
  // An account for transactions whose collections' own need not wait for them: a collection that no table knows.
  static CollectionRef new_account(StoreContext& store);

  // The sequencer of `account`, any collection, tells when it is durable. Nobody else knows the objects in this cube,
  // or the caller holds the unique lock of the collection that has them, until this is destroyed.
  OwnTransaction(StoreContext& store, TransactionPipeline& pipeline, StoreCube& home, Collection& account);
  ~OwnTransaction();  // takes it back when it was not submitted
  OwnTransaction(const OwnTransaction&) = delete;
  OwnTransaction& operator=(const OwnTransaction&) = delete;

  TxnPlanner& planner() { return m_planner; }
  vtkv::WriteBatch& batch() { return m_txn->batch; }
  // 0, or -EIO: its record cannot be read.
  int find(const ghobject_t& oid, OnodeRef* onode);
  // With all that it has, if it is there. 0, or the error of a step.
  int remove(const ghobject_t& oid, int64_t pool);
  // 0, or the error that makes it impossible; then it is taken back.
  int submit();
  vtkv::SequenceNumber sequence() const { return m_txn->last_sequence; }  // of what was submitted

 private:
  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  const TxnContextRef m_txn;
  TxnPlanner m_planner;
  bool m_submitted = false;
};

}  // namespace swimstore
