// SPDX-License-Identifier: LGPL-2.1-or-later
// A database alone, as the crash explorer's target: KvWorkload's load and oracle.
#pragma once

#include <span>

#include "vtkv/testing/crash_explorer.h"
#include "vtkv/testing/kv_workload.h"

namespace vtkv {

class KvCrashTarget final : public CrashTarget {
 public:
  // Of every second seed the queue of I/O is shallow: the collector reads whole segments then.
  KvCrashTarget(const CrashRun& run, const KvWorkloadSettings& settings);

  std::string record(SimEnv* env) override;
  std::string check(SimEnv* env, std::span<const SimMark> marks, uint64_t seed,
                    std::unique_ptr<CrashTarget>* next) override;

 private:
  const CrashRun m_run;
  const KvWorkloadSettings m_settings;
  KvHistory m_history;
  // Promised before the run began.
  size_t m_at_least = 0;
  size_t m_at_most = 0;
  KvCollected m_collected_at_least;
};

}  // namespace vtkv
