// SPDX-License-Identifier: LGPL-2.1-or-later
// The unique locks of the collections that a transaction names, taken in one global order: those of placement groups by
// address, then the others, also by address.
//
// Transactions of any placement group may set keys of the snapshots' map, in the OSD's own collection. They do their
// own part first, which may read, compress and wait for a device, and take its lock for the rest.
//
// Clang cannot follow a list of locks: who needs one of them asserts that it is held. Not thread-safe.
#pragma once

#include <span>

#include <boost/container/small_vector.hpp>

#include "swimstore/collection/collection.h"

namespace swimstore {

class CollectionLocks {
 public:
  // `named`: the one that the transaction is queued on first. If that is a placement group, those that are none are
  // left for later; else nothing is.
  explicit CollectionLocks(std::span<const CollectionRef> named);
  ~CollectionLocks();
  CollectionLocks(const CollectionLocks&) = delete;
  CollectionLocks& operator=(const CollectionLocks&) = delete;

  std::span<const CollectionRef> held() const { return {m_collections.data(), m_held}; }
  bool is_left(const coll_t& cid) const;
  void take_rest();

 private:
  void lock_up_to(size_t count) NO_THREAD_SAFETY_ANALYSIS;

  boost::container::small_vector<CollectionRef, 4> m_collections;  // in their order
  size_t m_held = 0;
};

}  // namespace swimstore
