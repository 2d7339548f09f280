// SPDX-License-Identifier: LGPL-2.1-or-later
// Groups of workloads that are run together, and the two named suites.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/result.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

struct Group {
  std::string name;  // empty for what the user composed
  std::vector<EngineSpec> engines;
  std::vector<const WorkloadKind*> workloads;
  std::vector<uint64_t> value_sizes;
  LoadSettings load;        // keys and value_bytes are set for each size
  uint64_t data_bytes = 0;  // load.keys follows from it unless keys is given
  uint64_t keys = 0;
  uint64_t memory_bytes = 0;
  bool sync = false;
  unsigned rounds = 1;
};

// Runs the groups below `path`; rounds and engines are interleaved within each workload. `done` gets all
// results so far after each one, so that an interrupted run leaves something.
Status run_groups(const std::vector<Group>& groups, const std::string& path,
                  const std::function<void(const std::vector<Result>&)>& done, std::vector<Result>* results);

}  // namespace vtkv::bench
