// SPDX-License-Identifier: LGPL-2.1-or-later
// A check of a cube that nobody uses, which keeps within swimstore_fsck_memory, or osd_memory_target.
//
// The number of passes follows from how many objects and slots the cube has. Where it takes more memory on the way than
// was estimated, it begins anew with twice the passes; where kFsckPassesMax are not enough, it takes more.
#pragma once

#include <memory>

#include "swimstore/fsck/fsck.h"

namespace swimstore {

// One that is over, in options.passes or more.
//
// REQUIRES: nothing is queued while it runs.
std::unique_ptr<Fsck> check_at_rest(StoreContext& store, StoreCube& cube, FsckOptions options);

}  // namespace swimstore
