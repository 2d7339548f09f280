// From ObjectStore transactions to a cube's log and back: plan, submit, call back.
//
// on_applied_sync runs inside queue; on_applied right after; on_commit when the transaction is durable, in
// queue order per collection, in the queue given by set_collection_commit_queue or else the finisher.
//
// Thread-safe.
#pragma once

#include <vector>

#include "os/ObjectStore.h"

#include "swimstore/store/store_context.h"

namespace swimstore {

class CommitPipeline {
 public:
  explicit CommitPipeline(StoreContext& store) : m_store(store) {}

  // Never waits for I/O of its own. An operation that cannot be carried out ends the process, after the
  // transaction was dumped (or throws its int, with objectstore_debug_throw_on_failed_txc).
  int queue(CollectionRef collection, std::vector<ObjectStore::Transaction>& transactions);
  // Waits until everything queued is durable and its contexts are queued. For umount.
  vtkv::Status drain();

 private:
  StoreContext& m_store;
};

}  // namespace swimstore
