// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/maintenance/own_transaction.h"

#include "include/rados.h"

#include "swimstore/transaction/transaction_pipeline.h"

namespace swimstore {

CollectionRef OwnTransaction::new_account(StoreContext& store) {
  return ceph::make_ref<Collection>(store.cct, coll_t(spg_t(pg_t(0, 0))), std::make_shared<OpSequencer>(store.env));
}

OwnTransaction::OwnTransaction(StoreContext& store, TransactionPipeline& pipeline, StoreCube& home, Collection& account)
    : m_store(store),
      m_pipeline(pipeline),
      m_txn(new TxnContext(store, home, pipeline, CollectionRef(&account), 0)),
      m_planner(store, *m_txn, nullptr) {
  ++pipeline.m_active;
  m_planner.plan().fadvise_flags = CEPH_OSD_OP_FLAG_FADVISE_DONTNEED;  // what is cached is what clients use
}

OwnTransaction::~OwnTransaction() {
  if (!m_submitted) {
    m_planner.take_back();
    m_pipeline.ended(0);
  }
}

int OwnTransaction::find(const ghobject_t& oid, OnodeRef* onode) {
  const vtkv::Status status = m_txn->home().onodes.find(oid, onode);
  return status.ok() ? 0 : m_store.metadata_failure.met(m_txn->home().number, status, "object ", oid);
}

int OwnTransaction::remove(const ghobject_t& oid, int64_t pool) {
  OnodeRef onode;
  if (const int r = find(oid, &onode); r < 0 || !onode->exists) {
    return r;
  }
  m_planner.plan().change(onode, pool);
  return m_planner.discard(onode);
}

int OwnTransaction::submit() {
  if (const int r = m_planner.finish(); r < 0) {
    return r;
  }
  m_txn->submit();
  m_submitted = true;
  return 0;
}

}  // namespace swimstore
