// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/check_at_rest.h"

#include <algorithm>

#include "common/debug.h"
#include "swimstore/fsck/check_memory.h"

#define dout_context store.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.fsck "

namespace swimstore {

namespace {

constexpr uint64_t kWorkBetweenLooks = 1u << 16;  // entries, between two looks at its memory

}  // namespace

std::unique_ptr<Fsck> check_at_rest(StoreContext& store, StoreCube& cube, FsckOptions options) {
  const uint64_t limit = check_memory_limit(*store.cct, "swimstore_fsck_memory", 1);
  uint64_t passes =
      std::max<uint64_t>(options.passes, std::min(memory_of_check(cube.cube).passes_for(limit), kFsckPassesMax));
  for (;; passes = more_passes(passes)) {
    options.passes = static_cast<unsigned>(passes);
    auto fsck = std::make_unique<Fsck>(store, cube, options);
    const bool is_last_try = more_passes(passes) == passes;
    bool more = true;
    while (more && (is_last_try || fsck->memory_bytes() <= limit)) {
      more = fsck->step(kWorkBetweenLooks);
    }
    if (!more) {
      return fsck;
    }
    dout(1) << "cube " << cube.number << ": more than " << limit << " bytes of memory in " << passes
            << " passes; the check begins anew with more" << dendl;
  }
}

}  // namespace swimstore
