// SPDX-License-Identifier: LGPL-2.1-or-later
// What room transactions need before they may be planned, on the device and in memory: known from their operations
// alone, without a look at objects.
#pragma once

#include <cstdint>
#include <vector>

#include "os/ObjectStore.h"

namespace swimstore {

struct NewBits {
  coll_t cid;
  uint32_t bits = 0;
};

struct SpaceNeed {
  // Of slots, at most. 0: it stores no data.
  uint64_t slot_bytes = 0;
  // It stores data or omap of clients, and waits where there is no room. What does not, makes room or keeps the store
  // going: deletes, the unaligned edges of truncate and zero, logs and infos of PGs, the OSD's maps.
  bool may_wait = false;
  bool is_much = false;  // ContainerSet::promise_much() is asked for it, which takes nothing where it does not all fit
  uint64_t metadata_bytes = 0;  // of log and tree, where it is much
  bool removes_internal = false;  // objects of the OSD's own collection
  std::vector<NewBits> new_bits;  // of collections that are made, or may get fewer
  // Of the transactions as they are: operations, names, attributes and data.
  uint64_t bytes = 0;

  static SpaceNeed of(std::vector<ObjectStore::Transaction>& transactions);
  bool is_none() const { return slot_bytes == 0 && !may_wait; }
};

// Of a collection that is to be moved (move/collection_mover.h), over the attempts to move it.
struct LackingRoom {
  SpaceNeed need;  // none: none lacks
  unsigned cut_short = 0;  // copies that found the room of log and tree used up
};

}  // namespace swimstore
