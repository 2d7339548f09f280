// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the runs hold tombstones that a small compaction gets rid of.
//
// A tombstone goes when it meets the oldest run. The shape of the tree (compaction_policy.h) brings it there some day;
// until then every scan over what was removed reads the tombstones and what they hide. So key ranges in which a
// run holds mostly tombstones are compacted by themselves, from that run down to the oldest, when that is worth it:
//
//   tombstones in the key range >= an eighth of the entries that the runs from there on hold in it, or these entries
//   are few.
//
// What is written then is at most seven entries for each tombstone that goes; in a range that was emptied key by key it
// is nothing. The descriptors of the runs that hold keys there are written anew as well: there have to be as many
// tombstones as make these worthwhile, too, half a KiB for each. Judged slice by slice from the descriptors in memory:
// nothing is read. So at the ends of what was removed, where a slice reaches far into what was not, the older runs hold
// several entries for a tombstone.
#pragma once

#include "vtkv/compaction/compaction_source.h"
#include "vtkv/table/sorted_run.h"

namespace vtkv {

struct PurgeChoice {
  bool any = false;  // false: nothing is worth it
  size_t first = 0;  // sorted runs from this one on, newest first, down to the oldest
  KeyRange range;
};

// `tombstones_min`: of the key range; at least 1. Only tombstones at or below `settled` count: no snapshot is older
// (UINT64_MAX: there are none), so that they go for certain. Leaves alone what a range tombstone of these runs reaches
// into.
PurgeChoice choose_purge(const SortedRuns& runs, uint64_t tombstones_min, SequenceNumber settled);

}  // namespace vtkv
