// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs one plan with threads and measures it.
#pragma once

#include "vtkv/tool/bench/result.h"
#include "vtkv/tool/bench/workload.h"

namespace vtkv::bench {

// Fills what can be measured from outside the engine into `result`. `path` names the device whose statistics count;
// `label` leads the progress lines. `warm_up_seconds` are run and not counted. `settle` waits for the engine
// afterwards; its work is part of the write amplification and of the CPU time.
Status run_plan(const Plan& plan, Engine& engine, unsigned threads, const std::string& path, const std::string& label,
                double warm_up_seconds, bool settle, Result* result);

// One line with the time of day, on standard error.
void say(const std::string& text);

}  // namespace vtkv::bench
