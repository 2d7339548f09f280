// SPDX-License-Identifier: LGPL-2.1-or-later
// What a store has written beside its callers' data: log records, flushed memtables, compacted runs.
#pragma once

#include <cstdint>

#include "os/ObjectStore.h"

namespace swimstore {

struct MetadataCounters {
  uint64_t log_bytes = 0;
  uint64_t flush_bytes = 0;
  uint64_t compaction_bytes = 0;
  bool known = false;  // false: the store is not a SwimStore

  uint64_t total() const { return log_bytes + flush_bytes + compaction_bytes; }
  MetadataCounters operator-(const MetadataCounters& earlier) const {
    return {log_bytes - earlier.log_bytes, flush_bytes - earlier.flush_bytes,
            compaction_bytes - earlier.compaction_bytes, known && earlier.known};
  }
};

// From the counters that the admin socket's "perf dump" shows. REQUIRES: mounted.
MetadataCounters read_metadata_counters(ObjectStore& store);

}  // namespace swimstore
