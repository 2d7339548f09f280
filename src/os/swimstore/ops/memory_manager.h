// SPDX-License-Identifier: LGPL-2.1-or-later
// Sizes the store's caches so that the process stays at osd_memory_target.
//
// Ceph's PriorityCache manager turns what the heap uses into a budget for all caches and divides it by
// ratio and demand; this class feeds it and obeys. Targets and ratios are read again at every turn, so that
// a change takes effect without a restart. Without swimstore_cache_autotune at mount there is one turn, and
// the sum is swimstore_cache_size.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/PriorityCache.h"
#include "include/common_fwd.h"

#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// A cache as this class sees it. Its functions may be called from any thread.
struct ManagedCache {
  std::string name;
  const char* ratio_option;  // nullptr: what the others leave
  std::function<uint64_t()> memory_bytes;
  std::function<void(uint64_t)> set_capacity;
};

class MemoryManager {
 public:
  MemoryManager(CephContext* cct, std::vector<ManagedCache> caches);
  ~MemoryManager();

  // Adjusts again and again until destroyed.
  void start(vtkv::Env* env);
  // Thread-safe.
  void adjust() EXCLUDES(m_lock);

 private:
  class Share;
  static std::vector<std::shared_ptr<Share>> shares_of(std::vector<ManagedCache> caches);
  void read_ratios() REQUIRES(m_lock);
  void adjust_to_target() REQUIRES(m_lock);
  void adjust_to_fixed_size() REQUIRES(m_lock);

  CephContext* const m_cct;
  const bool m_autotunes;
  vtkv::Mutex m_lock;
  const std::vector<std::shared_ptr<Share>> m_shares;  // what they hold: under m_lock
  std::unique_ptr<PriorityCache::Manager> m_manager GUARDED_BY(m_lock);
  std::unique_ptr<vtkv::Worker> m_worker;  // last: ends first
};

}  // namespace swimstore
