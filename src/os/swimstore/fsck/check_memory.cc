// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/check_memory.h"

namespace swimstore {

CheckMemory memory_of_check(Cube& cube) {
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

uint64_t check_memory_limit(const CephContext& cct, const char* option, uint64_t target_divisor) {
  const uint64_t set = cct._conf.get_val<Option::size_t>(option);
  return set > 0 ? set : cct._conf.get_val<Option::size_t>("osd_memory_target") / target_divisor;
}

}  // namespace swimstore
