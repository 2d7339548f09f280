// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/compaction/compaction_step.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

namespace {

SortedRuns::iterator find_sorted_run(SortedRuns* sorted_runs, uint64_t id) {
  const auto found =
      std::find_if(sorted_runs->begin(), sorted_runs->end(), [&](const SortedRun& each) { return each.id == id; });
  VTKV_ASSERT(found != sorted_runs->end());
  return found;
}

void insert_part(SortedRun* sorted_run, const std::shared_ptr<const Run>& part) {
  Runs& parts = sorted_run->parts;
  const size_t ordinal = sorted_run->first_behind(part->begin_key());
  VTKV_ASSERT(ordinal == parts.size() || part->end_key() <= parts[ordinal]->begin_key());
  parts.insert(parts.begin() + static_cast<ptrdiff_t>(ordinal), part);
}

}  // namespace

void TreeEdit::apply(SortedRuns* sorted_runs) const {
  size_t found = 0;
  for (SortedRun& sorted_run : *sorted_runs) {
    found += std::erase_if(sorted_run.parts, [&](const auto& part) {
      return std::find(removed.begin(), removed.end(), part) != removed.end();
    });
  }
  VTKV_ASSERT(found == removed.size());
  if (created) {
    const auto behind = find_sorted_run(sorted_runs, created->behind);
    sorted_runs->insert(behind + 1, {created->id, created->level, {}});
  }
  for (const Addition& addition : added) {
    insert_part(&*find_sorted_run(sorted_runs, addition.sorted_run_id), addition.part);
  }
  std::erase_if(*sorted_runs, [](const SortedRun& sorted_run) { return sorted_run.parts.empty(); });
}

}  // namespace vtkv
