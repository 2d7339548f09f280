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

#include "swimstore/cube/object_ids.h"
#include "swimstore/format/counter_record.h"
#include "vtkv/options.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

class CubeCounters {
 public:
  explicit CubeCounters(ObjectIds& object_ids) : m_object_ids(object_ids) {}

  void apply(const CubeDelta& delta);
  std::map<int64_t, PoolUsage> pool_usage() const;

  // At a checkpoint: entries of what changed since the last call.
  void collect(std::vector<vtkv::CheckpointEntry>* entries);
  vtkv::Status load(std::string_view key, std::string_view value);

 private:
  ObjectIds& m_object_ids;
  mutable vtkv::Mutex m_lock;
  Counters m_counters GUARDED_BY(m_lock);  // as of the last applied sequence
  std::set<int64_t> m_changed_pools GUARDED_BY(m_lock);
  bool m_next_object_id_changed GUARDED_BY(m_lock) = false;
};

}  // namespace swimstore
