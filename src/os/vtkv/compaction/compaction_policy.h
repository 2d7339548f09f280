// SPDX-License-Identifier: LGPL-2.1-or-later
// Which runs to compact next.
//
// A level that has Options::runs_per_level runs gives them up for one run. With as many runs per level as the growth
// factor (tiering), that run belongs to the next level: every entry is written once per level, and a lookup asks
// several runs per level. With fewer, it stays in its level until it has outgrown it (leveling, at runs_per_level 2):
// fewer runs, more writing. The runs of the next level join in when they are no bigger together than what comes down,
// so that the newest level does not keep a copy of a small old one.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "vtkv/table/run.h"

namespace vtkv {

struct CompactionShape {
  uint32_t runs_per_level = 4;
  uint32_t growth_factor = 4;
  uint64_t level_bytes = 32u << 20;  // of a run of level 0, about
};

struct CompactionChoice {
  size_t first = 0;  // among the runs, newest first
  size_t count = 0;  // 0: nothing is worth compacting
  uint32_t level = 0;  // of the result
};

// `busy`: ids of runs that a compaction under way works on. Only levels below `levels_end` are looked at.
CompactionChoice choose_compaction(const std::vector<std::shared_ptr<const Run>>& runs, const CompactionShape& shape,
                                   const std::set<uint64_t>& busy = {}, uint32_t levels_end = UINT32_MAX);

// When a checkpoint has no room for another run, whatever the shape, and a flush waits: the two neighbours with the
// fewest bytes; or up to sixteen that have few, when that gives more room for each byte.
CompactionChoice choose_emergency_compaction(const std::vector<std::shared_ptr<const Run>>& runs,
                                             const std::set<uint64_t>& busy);

// Bytes of the runs that a level has beyond what the shape allows.
uint64_t compaction_debt(const std::vector<std::shared_ptr<const Run>>& runs, const CompactionShape& shape);

}  // namespace vtkv
