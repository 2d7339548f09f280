// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/tool/metadata_counters.h"

#include "common/perf_counters.h"
#include "swimstore/ops/perf_counters.h"

namespace swimstore {

MetadataCounters read_metadata_counters(ObjectStore& store) {
  MetadataCounters counters;
  if (store.get_type() != "swimstore") {
    return counters;
  }
  store.refresh_perf_counters();
  const PerfCounters* values = store.get_perf_counters();
  counters.log_bytes = values->get(l_swimstore_log_bytes);
  counters.flush_bytes = values->get(l_swimstore_flush_bytes);
  counters.compaction_bytes = values->get(l_swimstore_compaction_bytes);
  counters.known = true;
  return counters;
}

}  // namespace swimstore
