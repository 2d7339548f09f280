// SPDX-License-Identifier: LGPL-2.1-or-later
// Moves a collection to another cube, as a whole: for a transaction that names placement groups of several cubes, as
// the merge of two does, and has to commit in one.
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
// entry, whose objects the next mount removes, or, between 3 and 4, two records; then the mount goes on with 4.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "swimstore/move/range_sweeper.h"
#include "swimstore/object/store_context.h"

namespace swimstore {

class TransactionPipeline;

class CollectionMover {
 public:
  CollectionMover(StoreContext& store, TransactionPipeline& pipeline)
      : m_store(store), m_pipeline(pipeline), m_sweeper(store, pipeline) {}

  // Waits until what is under way of the collection is durable, and then for its own steps. 0. -ENOSPC, with
  // *lacking_bytes set: nothing was changed, and so many have to be free in the new cube. -ESHUTDOWN: nothing becomes
  // durable any more; the process is about to end. Others are said in the log; the next mount removes what was copied.
  // REQUIRES: it exists; *lacking_bytes is 0.
  int move(Collection& collection, unsigned to, uint64_t* lacking_bytes) REQUIRES(collection.lock);

  // At a mount, before anybody uses the collections that were loaded: removes what moves that a crash cut short left
  // behind. `outdated`: as CollectionTable::load() found them. Waits until it is durable.
  vtkv::Status finish_interrupted(const std::vector<OutdatedRecord>& outdated);

 private:
  int try_move(Collection& collection, StoreCube& from, StoreCube& to, uint64_t* lacking_bytes)
      REQUIRES(collection.lock);
  int copy(Collection& collection, StoreCube& from, StoreCube& to, uint64_t* lacking_bytes) REQUIRES(collection.lock);
  int check_nobody_is_there(StoreCube& cube, const Collection& collection) const REQUIRES(collection.lock);
  int mark_unowned(StoreCube& cube, Collection& collection) REQUIRES(collection.lock);
  int put_record(StoreCube& to, Collection& collection) REQUIRES(collection.lock);
  int disown(StoreCube& cube, const UnownedObjects& objects, Collection& collection);
  int sweep_leftovers(StoreCube& cube, Collection& collection);
  vtkv::Status check_nobody_owns(const StoreCube& cube, const UnownedObjects& objects) const;
  vtkv::Status sweep_all(const std::vector<OutdatedRecord>& outdated, Collection& nobody);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  RangeSweeper m_sweeper;
};

}  // namespace swimstore
