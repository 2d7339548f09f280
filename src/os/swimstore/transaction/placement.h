// SPDX-License-Identifier: LGPL-2.1-or-later
// Which cube a collection lies in, and so which one a transaction commits in.
//
// A new placement group goes where its number and pool say, so that groups which merge later mostly meet. From then on
// its record says it, and nothing is computed again: the child of a split lies where its objects are. Everything but
// placement groups lies in cube 0. So do groups of a store that had one cube and got others, until they are moved; none
// is moved there.
#pragma once

#include <span>

#include "os/ObjectStore.h"

#include "swimstore/object/store_context.h"

namespace swimstore {

// Of a collection to be made, in a store with so many cubes.
unsigned new_home(const coll_t& cid, unsigned cubes);
// The same, or where that one is missing, or has objects of such a name that are being removed, one of the others, over
// which its groups are spread. 0: all that could have it are missing.
unsigned new_home(const coll_t& cid, StoreContext& store);

// Where a transaction commits.
struct Home {
  unsigned cube = 0;
  bool is_elsewhere = false;  // a placement group that it names lies in another cube
};
// `named`: all collections that it names, existing or not, the one that it is queued on first. The home of the first
// placement group among them that exists, cube 0 only if they all lie there; else that of the first to be made; else
// cube 0. Takes the groups' locks, shared, one after the other: by the time that they are taken again it may have
// changed.
Home home_of(std::span<const CollectionRef> named, StoreContext& store);
// The same, under the locks of all groups among them.
Home home_of_locked(std::span<const CollectionRef> named, StoreContext& store);

}  // namespace swimstore
