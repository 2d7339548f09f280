// Runs transactions on a store in a simulated host, and looks at what each possible crash leaves.
//
// Of every state: the store mounts; a deep fsck finds nothing; each collection holds the effect of a prefix of
// its transactions, with everything that was acknowledged in it. Then some crashes inside that recovery.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "include/common_fwd.h"

#include "swimstore/cube/cube.h"
#include "swimstore/testing/store_workload.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"

class SwimStore;

namespace swimstore {

struct ExplorerOptions {
  uint64_t seed = 1;
  vtkv::SimProfile profile = vtkv::SimProfile::ext4;
  unsigned transactions = 24;
  unsigned in_flight_max = 4;       // queued before the simulated host moves on
  size_t states_max = 400;          // spread over all cuts when there are more
  size_t nested_every = 20;         // one of so many states is crashed again while it recovers
  size_t nested_states_max = 8;
  WorkloadOptions workload;
  std::function<void(CubeOptions&)> mutate;  // breaks a rule of the run that is recorded
};

struct ExplorerResult {
  size_t cuts = 0, states = 0, nested_states = 0;
  std::vector<std::string> failures;  // each names seed and state
};

class StoreExplorer {
 public:
  // Options of the context are set for small stores, and stay so.
  StoreExplorer(CephContext* cct, const ExplorerOptions& options);
  ExplorerResult run();

 private:
  struct Lane {
    coll_t cid;
    std::vector<ModelCollection> history;  // after 0, 1, 2, … transactions
  };
  struct Acknowledged {
    std::vector<size_t> per_lane;
  };

  void record(vtkv::SimEnv* env);
  Acknowledged acknowledged_at(std::span<const vtkv::SimMark> marks) const;
  // Empty when the store is as it may be; else one sentence.
  std::string check(vtkv::SimEnv* env, const Acknowledged& acknowledged);
  std::string check_contents(SwimStore& store, const Acknowledged& acknowledged);
  void check_nested(const vtkv::SimEnv& recovered, const Acknowledged& acknowledged, const std::string& where);

  CephContext* m_cct;
  const ExplorerOptions m_options;
  std::vector<Lane> m_lanes;
  ExplorerResult m_result;
};

}  // namespace swimstore
