// SPDX-License-Identifier: LGPL-2.1-or-later
// The named suites: what they run, and what the gate asks of the results.
#pragma once

#include <string>
#include <vector>

#include "vtkv/tool/bench/suite.h"

namespace vtkv::bench {

// Engines whose library is absent are left out, with one message each.
std::vector<Group> gate_groups();
std::vector<Group> quick_groups();

// Synced writes per second that the device below `path` allows when `writers` of `bytes` each share one flush.
Status flush_ceiling(const std::string& path, unsigned writers, uint64_t bytes, double* ops_per_s);

// One line each: PASS, FAIL or NONE (not measured in this run), the figure and the bound. `path` is where the
// ceiling of synced writes is measured.
std::string gate_verdict(const std::vector<Result>& results, const std::string& path, bool* passed);

}  // namespace vtkv::bench
