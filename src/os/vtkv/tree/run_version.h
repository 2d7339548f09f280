// SPDX-License-Identifier: LGPL-2.1-or-later
// The tree's implementation of Version: sorted runs, newest first.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/table/sorted_run.h"
#include "vtkv/tree/version.h"

namespace vtkv {

class RunVersion final : public Version {
 public:
  explicit RunVersion(SortedRuns sorted_runs)
      : m_sorted_runs(std::move(sorted_runs)), m_parts(parts_of(m_sorted_runs)) {}

  Status get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const override;
  std::unique_ptr<AscendingLookups> ascending_lookups() const override;
  void new_iterators(std::string_view lower, std::string_view upper,
                     std::vector<std::unique_ptr<EntryIterator>>* iterators,
                     std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const override;

  const SortedRuns& sorted_runs() const { return m_sorted_runs; }
  const Runs& runs() const { return m_parts; }  // the parts of all of them

 private:
  const SortedRuns m_sorted_runs;
  const Runs m_parts;
};

}  // namespace vtkv
