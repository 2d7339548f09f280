// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/sorted_run.h"

#include <algorithm>

#include "vtkv/util/invariants.h"

namespace vtkv {

size_t SortedRun::first_behind(std::string_view key) const {
  return std::partition_point(parts.begin(), parts.end(), [&](const auto& part) { return part->end_key() <= key; }) -
         parts.begin();
}

const std::shared_ptr<const Run>* SortedRun::find(std::string_view key) const {
  const size_t ordinal = first_behind(key);
  return ordinal < parts.size() && parts[ordinal]->begin_key() <= key ? &parts[ordinal] : nullptr;
}

uint64_t SortedRun::entry_bytes() const {
  uint64_t bytes = 0;
  for (const auto& part : parts) {
    bytes += part->entry_bytes();
  }
  return bytes;
}

Runs parts_of(const SortedRuns& sorted_runs) {
  Runs all;
  for (const SortedRun& sorted_run : sorted_runs) {
    all.insert(all.end(), sorted_run.parts.begin(), sorted_run.parts.end());
  }
  return all;
}

Status make_sorted_runs(const Runs& parts, const std::vector<RunLocation>& locations, SortedRuns* sorted_runs) {
  VTKV_ASSERT(parts.size() == locations.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_first = sorted_runs->empty() || sorted_runs->back().id != locations[i].sorted_run_id;
    if (is_first) {
      sorted_runs->push_back({locations[i].sorted_run_id, locations[i].level, {}});
    } else if (sorted_runs->back().parts.back()->end_key() > parts[i]->begin_key()) {
      return Status::corruption("run " + std::to_string(locations[i].run_id) + " of " +
                                parts[i]->reader().file().path() +
                                " overlaps the one in front of it: restore the database from a copy");
    }
    sorted_runs->back().parts.push_back(parts[i]);
  }
  return {};
}

}  // namespace vtkv
