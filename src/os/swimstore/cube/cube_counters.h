// The counters of a cube: object ids and the sums per pool, as of the last applied sequence.
//
// Threads: all methods may be called from any thread; apply() in sequence order.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "swimstore/format/counter_record.h"
#include "vtkv/options.h"

namespace swimstore {

class CubeCounters {
 public:
  void apply(const CubeDelta& delta);
  // Reserved in memory; an id whose transaction is lost with a crash is given again.
  uint64_t new_object_id();
  std::map<int64_t, PoolUsage> pool_usage() const;

  // At a checkpoint: entries of what changed since the last call.
  void collect(std::vector<vtkv::CheckpointEntry>* entries);
  vtkv::Status load(std::string_view key, std::string_view value);

 private:
  mutable std::mutex m_lock;
  Counters m_counters;             // as of the last applied sequence
  uint64_t m_next_reserved = 1;    // object ids below it are taken or reserved
  std::set<int64_t> m_changed_pools;
  bool m_next_object_id_changed = false;
};

}  // namespace swimstore
