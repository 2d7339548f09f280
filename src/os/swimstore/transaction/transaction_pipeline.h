// SPDX-License-Identifier: LGPL-2.1-or-later
// From ObjectStore transactions to a cube's log and back: plan, submit, call back.
//
// on_applied_sync runs inside queue; on_applied right after; on_commit when the transaction is durable, in
// queue order per collection, in the queue given by set_collection_commit_queue or else the finisher.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "common/HBHandle.h"
#include "os/ObjectStore.h"

#include "swimstore/object/store_context.h"
#include "swimstore/ops/option_watch.h"
#include "swimstore/transaction/commit_throttle.h"
#include "swimstore/transaction/space_gate.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class TxnPlanner;

class TransactionPipeline {
 public:
  explicit TransactionPipeline(StoreContext& store);

  // Waits until there is room for what it stores, and while swimstore_throttle_bytes are under way, before anything
  // is planned or locked, with the timeout of `handle` suspended (nullptr: none, as for the OSD's client writes).
  // Then it never waits for I/O, except to read the blocks that an unaligned write changes in part. An operation that
  // cannot be carried out ends the process, after the transaction was dumped (or throws its int, with
  // objectstore_debug_throw_on_failed_txc).
  int queue(CollectionRef collection, std::vector<ObjectStore::Transaction>& transactions, HBHandle* handle);
  // Waits until everything queued is durable, or failed, and its contexts are queued. For umount.
  void drain();
  const CommitThrottle& throttle() const { return m_throttle; }
  const SpaceGate& space() const { return m_space; }

 private:
  friend class TxnContext;
  class Admission;

  // False: it has to be tried again.
  bool try_queue(const CollectionRef& collection, std::vector<ObjectStore::Transaction>& transactions,
                 HBHandle* handle);
  void ended(uint64_t throttled_bytes);
  // *planned: how many of them. An exception, as of a transaction that cannot be decoded, is one more error.
  int plan(TxnPlanner& planner, std::span<ObjectStore::Transaction::iterator> transactions, size_t* planned);

  [[noreturn]] void fail(ObjectStore::Transaction& transaction, int r);

  StoreContext& m_store;
  SpaceGate m_space;
  CommitThrottle m_throttle;
  const OptionWatch m_throttle_option;
  // Calls of queue() that wait or were submitted, and are not yet committed. It falls under m_mutex: when drain() sees
  // none left, no worker still has to do with this object, which may end then.
  std::atomic<uint64_t> m_active{0};
  vtkv::Mutex m_mutex;
  std::unique_ptr<vtkv::Signal> m_idle;
};

}  // namespace swimstore
