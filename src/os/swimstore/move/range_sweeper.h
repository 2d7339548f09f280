// SPDX-License-Identifier: LGPL-2.1-or-later
// Removes the objects of an unowned range (format/unowned_range.h), a few in a transaction, and last the entry that
// says so. A crash in between leaves the entry and fewer objects.
//
// Not thread-safe.
#pragma once

#include <atomic>
#include <vector>

#include "swimstore/object/store_context.h"

namespace swimstore {

class TransactionPipeline;

// One entry of a cube.
struct UnownedObjects {
  coll_t cid;  // whose they would be
  uint32_t bits = 0;
};

class RangeSweeper {
 public:
  RangeSweeper(StoreContext& store, TransactionPipeline& pipeline) : m_store(store), m_pipeline(pipeline) {}

  // All entries of the cube. Code::corruption: one cannot be decoded.
  static vtkv::Status list(StoreCube& cube, std::vector<UnownedObjects>* ranges);
  // Counts as transactions of `account`; what is under way of them stays bounded. 0, -ESHUTDOWN: nothing becomes
  // durable any more, or the error of one. -ECANCELED: *stop was set; the entry and the rest are there.
  // REQUIRES: the range's entry is in the cube, submitted; nobody else looks at its objects.
  int sweep(StoreCube& cube, const UnownedObjects& range, Collection& account, const std::atomic<bool>* stop);
  uint64_t objects() const { return m_objects; }  // removed so far

 private:
  int remove_some(StoreCube& cube, const UnownedObjects& range, Collection& account, ghobject_t* start, bool* done);

  StoreContext& m_store;
  TransactionPipeline& m_pipeline;
  uint64_t m_objects = 0;
};

}  // namespace swimstore
