// SPDX-License-Identifier: LGPL-2.1-or-later
// A whole store, as the crash explorer's target: transactions of every kind in two collections, which may move between
// the cubes of the store.
//
// Of every state: the store mounts; each collection holds the effect of a prefix of its transactions, with
// everything that was acknowledged in it; a deep fsck finds nothing, and no object that is in no collection.
// Acknowledgements are marked at the moment of simulated time at which the store gives them.
#pragma once

#include <string>
#include <vector>

#include "include/common_fwd.h"

#include "swimstore/cube/cube.h"
#include "swimstore/testing/store_oracle.h"
#include "vtkv/testing/crash_explorer.h"

class SwimStore;

namespace swimstore {

struct StoreCrashTargetOptions {
  unsigned in_flight_max = 4;  // queued before the simulated host moves on
  WorkloadOptions workload;
  uint64_t* defragmented_bytes = nullptr;  // what was put together is counted there
};

class StoreCrashTarget final : public vtkv::CrashTarget {
 public:
  // Options of the context are set for small stores, and stay so.
  StoreCrashTarget(CephContext* cct, const vtkv::CrashRun& run, const StoreCrashTargetOptions& options);

  std::string record(vtkv::SimEnv* env) override;
  // The second crash is one in this recovery, in the check, or at the end.
  std::string check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t seed,
                    std::unique_ptr<vtkv::CrashTarget>* next) override;

 private:
  void run_transactions(SwimStore& store, vtkv::SimEnv* env);

  CephContext* const m_cct;
  const vtkv::CrashRun m_run;
  const StoreCrashTargetOptions m_options;
  StoreOracle m_oracle;
};

}  // namespace swimstore
