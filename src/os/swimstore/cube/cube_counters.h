// SPDX-License-Identifier: LGPL-2.1-or-later
// The counters of a cube: object ids and the sums per pool, as of the last applied sequence.
//
// Threads: all methods may be called from any thread; apply() in sequence order.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "swimstore/format/counter_record.h"
#include "vtkv/options.h"
#include "vtkv/util/mutex.h"

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
  mutable vtkv::Mutex m_lock;
  Counters m_counters GUARDED_BY(m_lock);           // as of the last applied sequence
  uint64_t m_next_reserved GUARDED_BY(m_lock) = 1;  // object ids below it are taken or reserved
  std::set<int64_t> m_changed_pools GUARDED_BY(m_lock);
  bool m_next_object_id_changed GUARDED_BY(m_lock) = false;
};

}  // namespace swimstore
