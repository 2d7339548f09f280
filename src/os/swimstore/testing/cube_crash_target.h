// SPDX-License-Identifier: LGPL-2.1-or-later
// One cube, as the crash explorer's target: CubeWorkload's load and oracle, on a host that is nearly full.
#pragma once

#include "swimstore/testing/cube_workload.h"
#include "vtkv/testing/crash_explorer.h"

namespace swimstore {

// What runs went through: an explorer of runs in which nothing happens finds nothing.
struct CubeEvents {
  uint64_t flushes = 0, punched_bytes = 0, punched_fragments_bytes = 0, primed_bytes = 0, refused = 0;
  uint64_t quarantined = 0;  // runs that ended with a write to a bad slot
};

class CubeCrashTarget final : public vtkv::CrashTarget {
 public:
  // Adds to *events, when given, what each record() went through.
  CubeCrashTarget(const vtkv::CrashRun& run, CubeOptions options, CubeEvents* events = nullptr);

  std::string record(vtkv::SimEnv* env) override;
  std::string check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t seed,
                    std::unique_ptr<vtkv::CrashTarget>* next) override;

  // Small, and with a single flush where the profile allows it.
  static CubeOptions options_for(vtkv::SimProfile profile);

 private:
  // One slot cannot be written.
  void spoil_slot(vtkv::SimEnv& env) const;

  const vtkv::CrashRun m_run;
  const CubeOptions m_options;
  CubeEvents* const m_events;
  History m_history;
  uint64_t m_acknowledged = 0;  // before the run that is explored
  bool m_is_second = false;     // of a crash inside recovery, or after it
  bool m_quarantined = false;   // the bad slot was met before
};

}  // namespace swimstore
