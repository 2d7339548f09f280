// Merges runs into one.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "vtkv/tree/reducer.h"
#include "vtkv/tree/run.h"
#include "vtkv/tree/run_writer.h"

namespace vtkv {

// Entries of several sources in one order; of equal key and sequence, those of the earlier source first.
class EntryMerger {
 public:
  explicit EntryMerger(std::vector<std::unique_ptr<EntryIterator>> sources);
  void seek_to_first();
  bool valid() const { return !m_heap.empty() && m_status.ok(); }
  void next();  // REQUIRES: valid()
  const Entry& entry() const { return m_sources[m_heap.front()]->entry(); }
  const Status& status() const { return m_status; }

 private:
  bool comes_later(size_t a, size_t b) const;
  void push(size_t source);

  std::vector<std::unique_ptr<EntryIterator>> m_sources;
  std::vector<size_t> m_heap;  // of valid sources; the next one in front
  Status m_status;
};

// The runs below a flush or merge. Keys are looked up in their filters. For a range, blocks have to be
// read: only so often, then the answer is "may", so that a flush of many range removals stays short.
class OlderRuns final : public Reducer::Older {
 public:
  OlderRuns(std::vector<std::shared_ptr<const Run>> runs, uint32_t range_reads_max)
      : m_runs(std::move(runs)), m_range_reads_left(range_reads_max) {}
  bool may_hold(std::string_view key) const override;
  bool may_hold_any(std::string_view begin, std::string_view end) const override;

 private:
  const std::vector<std::shared_ptr<const Run>> m_runs;
  mutable uint32_t m_range_reads_left;
};

// Writes what is left of `runs` (newest first). *merged is null when nothing is. Ends with Code::busy
// soon after *stop became true.
Status merge_runs(const std::vector<std::shared_ptr<const Run>>& runs, const Reducer::Older& older,
                  const std::vector<SequenceNumber>& snapshots, const std::atomic<bool>& stop, DropObserver* drops,
                  RunWriter* writer, std::shared_ptr<const Run>* merged);

}  // namespace vtkv
