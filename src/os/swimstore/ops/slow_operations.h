// SPDX-License-Identifier: LGPL-2.1-or-later
// Operations that took long: each is told in the log, and all of some time in a health alert.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <string_view>

#include "common/perf_counters.h"
#include "osd/osd_types.h"

#include "swimstore/ops/option_watch.h"
#include "vtkv/env.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

// Thread-safe.
class SlowOperations {
 public:
  SlowOperations(CephContext* cct, vtkv::Env* env, PerfCounters& counters);

  // swimstore_log_op_age or longer.
  bool is_slow(std::chrono::nanoseconds latency) const {
    return latency.count() >= m_age_ns.load(std::memory_order_relaxed);
  }
  // Of a slow one: what was done, and to what.
  void note(std::string_view operation, const std::string& object, std::chrono::nanoseconds latency);
  // swimstore_slow_ops_warn_threshold of them within swimstore_slow_ops_warn_lifetime.
  void add_alert(const std::string& path, const vtkv::FileSystemInfo& host, osd_alert_list_t* alerts);

 private:
  struct Second {
    uint64_t number = 0;
    uint64_t count = 0;
  };

  void forget_before(uint64_t second) REQUIRES(m_mutex);

  CephContext* const m_cct;
  vtkv::Env* const m_env;
  PerfCounters& m_counters;
  std::atomic<int64_t> m_age_ns;
  const OptionWatch m_age_option;
  vtkv::Mutex m_mutex;
  // Those with slow operations, oldest first, none beyond the lifetime.
  std::deque<Second> m_seconds GUARDED_BY(m_mutex);
  uint64_t m_count GUARDED_BY(m_mutex) = 0;  // of all of them
  std::string m_last GUARDED_BY(m_mutex);    // in words
};

}  // namespace swimstore
