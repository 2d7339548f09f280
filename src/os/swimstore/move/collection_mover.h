// SPDX-License-Identifier: LGPL-2.1-or-later
// Moves a collection to another cube, as a whole and under its lock: for a transaction that names placement groups of
// several cubes, as the merge of two does, and has to commit in one. online_move.h takes the same steps while the
// collection is in use.
//
//   1. An entry in the new cube: objects of this range are nobody's there (format/unowned_range.h).
//   2. The objects are copied.
//   3. One transaction in the new cube: the collection's record, of a greater generation, and the entry goes. When it
//      is durable the collection lies there.
//   4. One transaction in the old cube: the collection's record goes, and an entry says that its objects are nobody's.
//      When it is durable the old cube claims nothing any more, whatever happens to the collection in the new one.
//   5. The old objects are removed, and last the entry.
//
// In one cube what is submitted first is durable first, so only 3 and 4 are waited for. A crash leaves one cube with an
// entry, whose objects the next mount removes, or, between 3 and 4, two records; then the mount goes on with 4. A copy
// for which log and tree have no room any more is removed as in 5, in the new cube.
//
// Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "swimstore/move/range_sweeper.h"
#include "swimstore/object/store_context.h"
#include "swimstore/transaction/space_need.h"

namespace swimstore {

class TransactionPipeline;

class CollectionMover {
 public:
  CollectionMover(StoreContext& store, TransactionPipeline& pipeline);

  // In one go, and one of a store at a time. Waits until what is under way of the collection is durable, and then for
  // its own steps. 0. -ENOSPC: it lies where it lay, nothing of it in the new cube, where there has to be room for
  // lacking->need. -ESHUTDOWN: nothing becomes durable any more; the process is about to end. Others are said in the
  // log; the next mount removes what was copied.
  // REQUIRES: it exists; lacking->need is none, and the rest as the attempt before left it.
  int move(Collection& collection, unsigned to, LackingRoom* lacking) REQUIRES(collection.lock);

  // At a mount, before anybody uses the collections that were loaded: removes what moves that a crash cut short left
  // behind. `outdated`: as CollectionTable::load() found them. Waits until it is durable.
  vtkv::Status finish_interrupted(const std::vector<OutdatedRecord>& outdated);

  // ---- the steps, also of a move in the background (online_move.h); 0 or an error as of move()
  // Before 1. -EEXIST: objects of its range lie there, in no collection; the move would remove them. Takes as long as
  // reading past all that were removed there.
  int check_nobody_is_there(StoreCube& cube, const Collection& collection) const REQUIRES_SHARED(collection.lock);
  // 1.
  int mark_unowned(StoreCube& cube, const Collection& collection) REQUIRES(collection.lock);
  // 3, and waits.
  int put_record(StoreCube& to, Collection& collection) REQUIRES(collection.lock);
  // 4, and waits.
  int disown(StoreCube& cube, const UnownedObjects& objects);
  // 5, or what a move that failed has left. `stop`: see RangeSweeper.
  int sweep(StoreCube& cube, const UnownedObjects& objects, const std::atomic<bool>* stop = nullptr);
  // Its sequencer tells when all this is durable: what waits for the collection's transactions need not wait for that.
  Collection& account() { return *m_account; }

 private:
  int try_move(Collection& collection, StoreCube& from, StoreCube& to, LackingRoom* lacking) REQUIRES(collection.lock);
  int copy(Collection& collection, StoreCube& from, StoreCube& to, LackingRoom* lacking) REQUIRES(collection.lock);
  int take_back_copy(const Collection& collection, StoreCube& to) REQUIRES(collection.lock);
  int submit_disowning(StoreCube& cube, const UnownedObjects& objects);
  int sweep_leftovers(StoreCube& cube, const Collection& collection);
  vtkv::Status check_nobody_owns(const StoreCube& cube, const UnownedObjects& objects) const;
  vtkv::Status sweep_all(const std::vector<OutdatedRecord>& outdated);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  const CollectionRef m_account;
  RangeSweeper m_sweeper;
};

}  // namespace swimstore
