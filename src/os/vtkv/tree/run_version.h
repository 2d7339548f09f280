// SPDX-License-Identifier: LGPL-2.1-or-later
// The tree's implementation of Version: runs, newest first.
#pragma once

#include <memory>
#include <vector>

#include "vtkv/table/run.h"
#include "vtkv/tree/version.h"

namespace vtkv {

class RunVersion final : public Version {
 public:
  explicit RunVersion(std::vector<std::shared_ptr<const Run>> runs) : m_runs(std::move(runs)) {}

  Status get(std::string_view key, SequenceNumber at_most, Lookup* result, std::string* value) const override;
  std::unique_ptr<AscendingLookups> ascending_lookups() const override;
  void new_iterators(std::string_view lower, std::string_view upper,
                     std::vector<std::unique_ptr<EntryIterator>>* iterators,
                     std::vector<std::shared_ptr<const RangeTombstones>>* tombstones) const override;

  const std::vector<std::shared_ptr<const Run>>& runs() const { return m_runs; }

 private:
  const std::vector<std::shared_ptr<const Run>> m_runs;
};

}  // namespace vtkv
