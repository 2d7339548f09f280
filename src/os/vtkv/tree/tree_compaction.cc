// SPDX-License-Identifier: LGPL-2.1-or-later
// Steps of compaction: chosen, carried out, installed.
#include <algorithm>

#include "vtkv/compaction/compaction_job.h"
#include "vtkv/compaction/purge_policy.h"
#include "vtkv/tree/tree.h"
#include "vtkv/util/invariants.h"
#include "vtkv/util/mutations.h"

namespace vtkv {

namespace {
// Blocks read to find out whether range tombstones can be dropped: a small part of a step.
constexpr uint32_t kRangeReadsMax = 10'000;
constexpr int kTriesMost = 8;
// The file takes so much of the host at most, of overwrites at random: times what lives, and memtables.
constexpr double kLiveShareMost = 1.65;
constexpr double kMemtablesMost = 6;
constexpr double kNearlyMost = 0.85;
}  // namespace

StitchPolicy Tree::stitch_policy() const {
  StitchPolicy policy;
  policy.bytes_min = m_stitch_threshold_bytes.load();
  return policy;
}

Status Tree::install_edit(const TreeEdit& edit, const ValueDelta& values) {
  if (edit.empty()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(edit.added.empty() ? Status() : sync_zones());
  VTKV_RETURN_IF_ERROR(install([&](SortedRuns* runs) { edit.apply(runs); }, nullptr,
                               [&](Segments* segments) { values.apply(segments); }));
  m_reader.file().give_back_surplus();
  return {};
}

Status Tree::run_job(const SortedRuns& runs, const CompactionStep& step, const std::vector<SequenceNumber>& snapshots,
                     TreeEdit* edit) {
  ValueDelta values;
  CompactionJob job({m_env, m_reader, [this] { return m_next_run_id.fetch_add(1); }, writer_settings(0),
                     stitch_policy(), kRangeReadsMax},
                    runs, step, snapshots, &values);
  const Status status = job.run();
  count_written(job.written_bytes(), job.stitched_bytes(), job.filter_read_bytes());
  VTKV_RETURN_IF_ERROR(status);
  *edit = job.take_edit();
  return install_edit(*edit, values);
}

bool Tree::is_file_large(const SortedRuns& runs) const {
  const double live_bytes = static_cast<double>(weigh(runs, m_shape).last_bytes);
  const double most = kLiveShareMost * live_bytes + kMemtablesMost * static_cast<double>(m_options.memtable_bytes);
  return static_cast<double>(m_reader.file().map().allocated_bytes()) > kNearlyMost * most;
}

Status Tree::do_step(const SortedRuns& runs, const CompactionStep& step, const SnapshotSource& snapshots,
                     bool* changed) {
  TreeEdit edit;
  const Status status = run_job(runs, step, snapshots(), &edit);
  *changed = status.ok() && !edit.empty();
  (void)spare_space_after(status);
  if (status.ok()) {
    m_policy.succeeded(runs, step, edit.created ? std::optional(edit.created->id) : std::nullopt);
    m_policy.forget_missing(current_sorted_runs());
    note_quarantine({});
  } else if (is_quarantined(status)) {
    m_policy.failed(runs, step);
    note_quarantine(status);
  }
  if (status.ok() && is_file_large(runs)) {
    // The older copy of the manifest holds the inputs until the next checkpoint.
    bool let_go = false;
    VTKV_RETURN_IF_ERROR(let_go_of_more_than(0, &let_go));
    m_reader.file().give_back_surplus();
  }
  return status;
}

CompactionStep Tree::choose_purge_step(const SortedRuns& runs, const SnapshotSource& source) {
  if (m_options.purge_tombstones_min == 0) {
    return {};
  }
  const std::vector<SequenceNumber> snapshots = source();  // for the choice
  const PurgeChoice choice =
      choose_purge(runs, m_options.purge_tombstones_min, snapshots.empty() ? UINT64_MAX : snapshots.front());
  if (!choice.any) {
    return {};
  }
  CompactionStep step = m_policy.into_last_level(runs, choice.first, choice.range);
  step.renews_filters = true;
  return m_policy.is_blocked(runs, step) ? CompactionStep() : step;
}

Status Tree::compact_once(const SnapshotSource& given, bool* did) {
  MutexLock compaction_lock(m_compaction_lock);
  *did = false;
  const SnapshotSource snapshots = listed(given);
  VTKV_RETURN_IF_ERROR(failure());
  // A step may find that nothing in its range has to change: then the turn goes on.
  for (int tries = 0; tries < kTriesMost && m_options.auto_compaction; ++tries) {
    const SortedRuns runs = current_sorted_runs();
    CompactionStep step = is_list_nearly_full() ? m_policy.choose_for_room(runs) : m_policy.choose(runs);
    const bool purges = step.count == 0;
    if (purges) {
      step = choose_purge_step(runs, snapshots);
    }
    if (step.count == 0) {
      break;
    }
    VTKV_RETURN_IF_ERROR(do_step(runs, step, snapshots, did));
    if (*did) {
      count(purges ? &TreeStatistics::purges : &TreeStatistics::compactions);
      return {};
    }
  }
  m_pressure = 0;  // nobody shall wait for a compaction that has nothing to do
  return let_go_of_replaced(did);
}

Status Tree::compact_all(const SnapshotSource& given) {
  const SnapshotSource snapshots = listed(given);
  std::optional<std::string> cursor("");
  Status first_error;
  while (cursor) {
    MutexLock compaction_lock(m_compaction_lock);
    VTKV_RETURN_IF_ERROR(go_on());
    const SortedRuns runs = current_sorted_runs();
    // Writers go on meanwhile, and must not wait for the end of all this.
    CompactionStep step = compaction_pressure() >= 1 ? m_policy.choose(runs) : CompactionStep();
    if (step.count == 0) {
      step = m_policy.choose_all(runs, &cursor);
    }
    if (step.count == 0) {
      break;
    }
    bool changed = false;
    const Status status = do_step(runs, step, snapshots, &changed);
    if (changed) {
      count(&TreeStatistics::compactions);
    }
    if (!status.ok() && !is_quarantined(status)) {
      return status;
    }
    first_error = first_error.ok() ? status : first_error;
  }
  return first_error;
}

void Tree::count_written(uint64_t written_bytes, uint64_t stitched_bytes, uint64_t filter_read_bytes) {
  MutexLock lock(m_lock);
  m_statistics.compaction_bytes += written_bytes;
  m_statistics.stitched_bytes += stitched_bytes;
  m_statistics.filter_read_bytes += filter_read_bytes;
}

void Tree::count(uint64_t TreeStatistics::* kind) {
  MutexLock lock(m_lock);
  ++(m_statistics.*kind);
}

}  // namespace vtkv
