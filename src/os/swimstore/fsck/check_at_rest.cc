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

uint64_t memory_limit_bytes(const CephContext& cct) {
  const uint64_t set = cct._conf.get_val<Option::size_t>("swimstore_fsck_memory");
  return set > 0 ? set : cct._conf.get_val<Option::size_t>("osd_memory_target");
}

}  // namespace

CheckMemory check_memory(Cube& cube) {
  int64_t objects = 0;
  for (const auto& [pool, usage] : cube.pool_usage()) {
    objects += usage.objects;
  }
  CheckMemory memory;
  memory.objects = static_cast<uint64_t>(std::max<int64_t>(objects, 0));
  memory.bytes = memory.objects * kCheckedObjectBytes;
  const ContainerStatistics containers = cube.containers().statistics();
  for (unsigned size_class = 0; size_class < kSizeClasses; ++size_class) {
    const uint64_t owned = containers.classes[size_class].owned;
    memory.slots += owned;
    memory.bytes += owned * ReferenceAudit::slot_memory_bytes(size_class);
  }
  return memory;
}

std::unique_ptr<Fsck> check_at_rest(StoreContext& store, StoreCube& cube, FsckOptions options) {
  const uint64_t limit = memory_limit_bytes(*store.cct);
  uint64_t passes =
      std::max<uint64_t>(options.passes, std::min(check_memory(cube.cube).passes_for(limit), kFsckPassesMax));
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
