// From ObjectStore transactions to a cube's log and back: plan, submit, call back.
//
// on_applied_sync runs inside queue; on_applied right after; on_commit when the transaction is durable, in
// queue order per collection, in the queue given by set_collection_commit_queue or else the finisher.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "os/ObjectStore.h"

#include "swimstore/store/store_context.h"

namespace swimstore {

class CommitPipeline {
 public:
  explicit CommitPipeline(StoreContext& store) : m_store(store), m_idle(store.env->new_signal()) {}

  // Never waits for I/O, except to read the blocks that an unaligned write changes in part. An operation
  // that cannot be carried out ends the process, after the transaction was dumped (or throws its int,
  // with objectstore_debug_throw_on_failed_txc).
  int queue(CollectionRef collection, std::vector<ObjectStore::Transaction>& transactions);
  // Waits until everything queued is durable, or failed, and its contexts are queued. For umount.
  void drain();

 private:
  friend class TxnContext;
  void began() { ++m_active; }
  void ended();

  [[noreturn]] void fail(ObjectStore::Transaction& transaction, int r);

  StoreContext& m_store;
  // Submitted, not yet committed. It falls under m_mutex: when drain() sees none left, no worker still has to do
  // with this object, which may end then.
  std::atomic<uint64_t> m_active{0};
  std::mutex m_mutex;
  std::unique_ptr<vtkv::Signal> m_idle;
};

}  // namespace swimstore
