// SPDX-License-Identifier: LGPL-2.1-or-later
// The runs below a flush or compaction. Keys are looked up in their filters. For a range, blocks have to be
// read: only so often, then the answer is "may", so that a flush of many range tombstones stays short. It is "may" as
// well from when `pace` says that it has to end: whoever asked looks at status() before the answers count.
#pragma once

#include "vtkv/compaction/compaction_iterator.h"
#include "vtkv/table/pace.h"
#include "vtkv/table/sorted_run.h"

namespace vtkv {

class OlderRuns final : public CompactionIterator::Older {
 public:
  OlderRuns(SortedRuns runs, uint32_t range_reads_max, CompactionPace pace = {})
      : m_runs(std::move(runs)), m_range_reads_left(range_reads_max), m_paced(std::move(pace)) {}
  bool may_hold(std::string_view key) const override;
  bool may_hold_any(std::string_view begin, std::string_view end) const override;
  bool empty() const override { return m_runs.empty(); }
  const Status& status() const { return m_paced.status(); }

 private:
  bool may_hold_any(const Run& part, std::string_view begin, std::string_view end) const;

  const SortedRuns m_runs;
  mutable uint32_t m_range_reads_left;
  mutable Paced m_paced;
};

}  // namespace vtkv
