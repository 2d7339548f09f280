// SPDX-License-Identifier: LGPL-2.1-or-later
// Placement groups whose cube the store goes on without, made anew, empty, in another cube; and those that have lost
// their own object.
//
// An OSD that does not have a group says so to its peers, and they take it for one that never had it. An older copy may
// then become the newest one that is known: what was acknowledged since is lost, and nobody notices. So the group is
// there again, as one that a backfill has yet to fill, and says in which epoch it was last in use: peers with an older
// copy do not go on without a newer one (Ceph: PeeringState::find_best_info).
//
// What it says is its witness (format/witness.h), which every transaction that changes it writes first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "swimstore/object/store_context.h"

namespace swimstore {

class TransactionPipeline;

struct LostGroup {
  coll_t cid;
  uint32_t bits = 0;
  std::map<std::string, std::string> values;  // by their omap keys, of an empty copy
};

// Those that lay in one of `cubes`, and that no other cube has a record of. One without an info was never in use, and
// one that another group covers was merged into it: they are not among them. Code::corruption: a witness is damaged, or
// not all groups have one. REQUIRES: the collections of the other cubes were loaded.
vtkv::Status find_lost_groups(StoreContext& store, const MissingCubes& cubes, std::vector<LostGroup>* lost);

// Those that are there and had an info, but have lost it, as when a repair has quarantined their own object: an OSD
// does not load such a group, and says to its peers that it never had it. Code::corruption: a witness is damaged.
vtkv::Status find_groups_without_info(StoreContext& store, std::vector<LostGroup>* found);

// Makes them anew, where new groups go, or in place one that is there: its objects stay, and a backfill compares them.
// Waits until that is durable. To make one again, after a crash, changes nothing.
vtkv::Status make_anew(StoreContext& store, TransactionPipeline& pipeline, const std::vector<LostGroup>& lost);

// Code::failed: one names a cube that the store does not have. An old copy of its superblock may not know its cubes.
vtkv::Status check_witnessed_homes(StoreContext& store);

// At a mount, before the older of two records of a group goes: the witness may still name its cube, for a crash came
// between the newer record and that. Durable on return.
vtkv::Status witness_homes(StoreContext& store, const std::vector<OutdatedRecord>& outdated);

// Reads what a witness is made of. An error tells that the group's cube is damaged.
vtkv::Status check_readable(StoreContext& store, Collection& collection);

// At a mount, when no group is lost any more: makes the witnesses what they should be. A crash may have left one that
// is newer than its group, or one of a group that is gone; after mkfs and after an upgrade all are missing. Waits until
// it is durable.
vtkv::Status settle_witnesses(StoreContext& store);

// Groups whose copy here is not whole: a backfill has yet to fill them.
vtkv::Status find_unfilled_groups(StoreContext& store, std::vector<coll_t>* unfilled);

}  // namespace swimstore
