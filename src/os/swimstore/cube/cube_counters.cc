// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/cube/cube_counters.h"

namespace swimstore {

using vtkv::MutexLock;
using vtkv::Status;

void CubeCounters::apply(const CubeDelta& delta) {
  if (delta.pools.empty() && delta.next_object_id == 0) {
    return;
  }
  MutexLock lock(m_lock);
  for (const auto& [id, usage] : delta.pools) {
    m_counters.pools[id] += usage;
    m_changed_pools.insert(id);
  }
  if (delta.next_object_id > m_counters.next_object_id) {
    m_counters.next_object_id = delta.next_object_id;
    m_object_ids.begin_at(delta.next_object_id);  // one that is replayed
    m_next_object_id_changed = true;
  }
}

std::map<int64_t, PoolUsage> CubeCounters::pool_usage() const {
  MutexLock lock(m_lock);
  std::map<int64_t, PoolUsage> pools = m_counters.pools;
  std::erase_if(pools, [](const auto& pool) { return pool.second.is_zero(); });
  return pools;
}

void CubeCounters::collect(std::vector<vtkv::CheckpointEntry>* entries) {
  MutexLock lock(m_lock);
  for (int64_t id : m_changed_pools) {
    entries->push_back({Counters::pool_key(id), Counters::pool_value(m_counters.pools[id])});
  }
  m_changed_pools.clear();
  if (m_next_object_id_changed) {
    entries->push_back({Counters::next_object_id_key(), m_counters.next_object_id_value()});
    m_next_object_id_changed = false;
  }
}

Status CubeCounters::load(std::string_view key, std::string_view value) {
  MutexLock lock(m_lock);
  VTKV_RETURN_IF_ERROR(m_counters.load(key, value));
  m_object_ids.begin_at(m_counters.next_object_id);
  return {};
}

}  // namespace swimstore
