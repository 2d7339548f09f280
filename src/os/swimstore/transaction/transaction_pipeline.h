// SPDX-License-Identifier: LGPL-2.1-or-later
// From ObjectStore transactions to a cube's log and back: plan, submit, call back.
//
// on_applied_sync runs inside queue; on_applied right after; on_commit when the transaction is durable, in
// queue order per collection (collection/callback_threads.h).
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/HBHandle.h"
#include "os/ObjectStore.h"

#include "swimstore/object/store_context.h"
#include "swimstore/ops/option_watch.h"
#include "swimstore/ops/pool_options.h"
#include "swimstore/transaction/commit_throttle.h"
#include "swimstore/transaction/space_gate.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class TxnPlanner;
class WitnessWriter;

class TransactionPipeline {
 public:
  // Moves a collection to another cube (move/collection_mover.h). 0. -ENOSPC: for lacking->need there has to be room
  // there. -ESHUTDOWN: nothing becomes durable any more. Others were said in the log. The caller holds the collection's
  // lock.
  using Move = std::function<int(Collection& collection, unsigned to, LackingRoom* lacking)>;

  // Before a collection is made in that cube, or gets so few bits there: nothing may lie there that it would take for
  // its own. 0; -ESHUTDOWN: it cannot be any more. Others were said in the log. The caller holds the collection's lock.
  using MakeWay = std::function<int(unsigned cube, const coll_t& cid, uint32_t bits)>;

  TransactionPipeline(StoreContext& store, Move move, MakeWay make_way);

  // Waits until there is room for what it stores, and while swimstore_throttle_bytes are under way, before anything
  // is planned or locked, with the timeout of `handle` suspended (nullptr: none, as for the OSD's client writes).
  // Then, under the collections' locks, it waits for what it has to read (onodes and extents that are not in memory,
  // blocks that are changed in part, an omap that is cloned), and for commits of other cubes where it concerns several
  // (doc/cubes.md). An operation that
  // cannot be carried out ends the process, after the transaction was dumped (or throws its int, with
  // objectstore_debug_throw_on_failed_txc).
  int queue(CollectionRef collection, std::vector<ObjectStore::Transaction>& transactions, HBHandle* handle);
  // Waits as a write of so many bytes would, for the throttle and while space runs short. For what the store itself
  // writes, before it takes any lock.
  void wait_for_turn(uint64_t bytes);
  // Waits until everything queued is durable, or failed, and its contexts are queued. For umount.
  void drain();
  // How many queue() was called for. Where drain() is behind one count, and all callbacks behind that, and the count is
  // the same, no callback has queued anything.
  uint64_t begun() const { return m_begun; }
  const CommitThrottle& throttle() const { return m_throttle; }
  const SpaceGate& space() const { return m_space; }
  const RelaxedPools& relaxed_pools() const { return m_relaxed; }

 private:
  friend class OwnTransaction;
  friend class TxnContext;
  class Admission;

  // Why a transaction was not queued, and has to be tried again.
  struct Obstacle {
    unsigned cube = 0;
    LackingRoom lacking{};  // there, for a collection that has to be moved there
  };
  // False: nothing becomes durable any more.
  bool wait_for_all_cubes();
  // False: it has to be tried again.
  bool try_queue(const CollectionRef& collection, std::vector<ObjectStore::Transaction>& transactions, HBHandle* handle,
                 Obstacle* obstacle);
  void wait_for(const Obstacle& obstacle, HBHandle* handle);
  void ended(uint64_t throttled_bytes);
  // An exception, as of a transaction that cannot be decoded, is one more error.
  int plan(TxnPlanner& planner, std::span<ObjectStore::Transaction::iterator> transactions);

  // Waits for them, if there are any. False: nothing becomes durable any more.
  static bool write_witnesses(WitnessWriter& witnesses, HBHandle* handle);
  // Moves placement groups that lie elsewhere to the cube in which the transaction that names them commits.
  int gather(std::span<const CollectionRef> locked, unsigned home, HBHandle* handle, LackingRoom* lacking);
  int make_way(std::span<const NewBits> groups, unsigned home, HBHandle* handle);
  [[noreturn]] void refuse(ObjectStore::Transaction& transaction, int r);

  StoreContext& m_store;
  const Move m_move;
  const MakeWay m_make_way;
  SpaceGate m_space;
  CommitThrottle m_throttle;
  const OptionWatch m_throttle_option;
  const RelaxedPools m_relaxed;
  // Calls of queue() that wait or were submitted, and are not yet committed. It falls under m_mutex: when drain() sees
  // none left, no worker still has to do with this object, which may end then.
  std::atomic<uint64_t> m_active{0};
  std::atomic<uint64_t> m_begun{0};
  vtkv::Mutex m_mutex;
  std::unique_ptr<vtkv::Signal> m_idle;
};

}  // namespace swimstore
