// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/at_rest.h"

#include "vtkv/metrics.h"

namespace vtkv {

namespace {

constexpr uint64_t kStepsMost = 500'000;  // far more than any test's load leaves to be done
constexpr std::chrono::minutes kWhile{10};

uint64_t writes(const SimEnv& env) {
  uint64_t calls = 0;
  for (const SimCall call :
       {SimCall::write, SimCall::sync, SimCall::allocate, SimCall::truncate, SimCall::punch_hole}) {
    calls += env.calls(call);
  }
  return calls;
}

// The counters that grew meanwhile.
std::string growth(const DBStatistics& before, const DBStatistics& after) {
  const std::vector<Metric> old = metrics_of(before);
  const std::vector<Metric> now = metrics_of(after);
  std::string text;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].value > old[i].value) {
      text += std::string(" ") + now[i].name + " +" + std::to_string(now[i].value - old[i].value);
    }
  }
  return text;
}

}  // namespace

std::string unrest(SimEnv* env, DB& db) {
  const DBStatistics at_first = db.statistics();
  if (!env->becomes_idle(kStepsMost, kWhile)) {
    return "workers do not become idle;" + growth(at_first, db.statistics());
  }
  const DBStatistics before = db.statistics();
  const uint64_t written = writes(*env);
  if (!env->becomes_idle(kStepsMost, kWhile)) {
    return "workers become busy again with nothing to do;" + growth(before, db.statistics());
  }
  return writes(*env) == written ? ""
                                 : std::to_string(writes(*env) - written) + " calls wrote with nothing to do;" +
                                       growth(before, db.statistics());
}

}  // namespace vtkv
