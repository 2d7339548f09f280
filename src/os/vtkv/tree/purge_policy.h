// Where the runs hold removals that a small merge gets rid of.
//
// A removal goes when it meets the oldest run. The shape of the tree (merge_policy.h) brings it there some day; until
// then every scan over what was removed reads the removals and what they hide. So stretches of keys in which a run
// holds mostly removals are merged by themselves, from that run down to the oldest, when that is worth it:
//
//   removals in the stretch >= an eighth of the entries that the runs from there on hold in it, or these entries are few.
//
// What is written then is at most seven entries for each removal that goes; in a range that was emptied key by key it is
// nothing. The descriptors of the runs that hold keys there are written anew as well: there have to be as many removals
// as make these worthwhile, too, half a KiB for each. Judged part by part from the descriptors in memory: nothing is read. So at the ends of what was removed, where
// a part reaches far into what was not, the older runs hold several entries for a removal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vtkv/tree/merge_source.h"
#include "vtkv/tree/run.h"

namespace vtkv {

struct PurgeChoice {
  size_t first = 0;  // runs from this one on, newest first, down to the oldest
  size_t count = 0;  // 0: nothing is worth it
  KeyRange stretch;  // of keys
};

// `removals_min`: of the stretch; at least 1. Only removals at or below `settled` count: no snapshot is older (UINT64_MAX: there are none), so that they go for
// certain. Leaves alone what a range removal of these runs reaches into.
PurgeChoice choose_purge(const std::vector<std::shared_ptr<const Run>>& runs, uint64_t removals_min,
                         SequenceNumber settled);

// Do its parts say that the run may hold keys of the stretch? Where they do not, it holds none.
bool reaches_into(const Run& run, const KeyRange& stretch);

}  // namespace vtkv
