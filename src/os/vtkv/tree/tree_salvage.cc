// SPDX-License-Identifier: LGPL-2.1-or-later
// Opening a tree of which a part cannot be read.

#include "vtkv/table/salvaged.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

void Tree::load_salvaged(Salvaged* salvaged) {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  Runs runs;
  for (const RunLocation& location : m_checkpoint.runs) {
    runs.push_back(Run::salvage(m_reader, location, salvaged));
  }
  SortedRuns sorted_runs;
  // Runs that overlap others of their sorted run under good checksums: each becomes one by itself.
  if (!make_sorted_runs(runs, m_checkpoint.runs, &sorted_runs).ok()) {
    sorted_runs.clear();
    for (const auto& run : runs) {
      sorted_runs.push_back({run->location().run_id, run->location().level, {run}});
    }
  }
  MutexLock lock(m_lock);
  m_epoch = m_checkpoint.epoch;
  m_copies[m_epoch % 2] = {m_epoch, m_checkpoint.position, runs, m_checkpoint.segments};
  m_current = std::make_shared<RunVersion>(std::move(sorted_runs));
}

Status salvage_tree(Env* env, const std::string& directory, const Options& options, Salvaged* salvaged,
                    std::unique_ptr<Tree>* tree) {
  std::unique_ptr<Manifest> manifest;
  Checkpoint newest, older;
  std::shared_ptr<ZoneFile> zones;
  VTKV_RETURN_IF_ERROR(Tree::open_files(env, directory, &manifest, &zones, &newest, &older));
  const bool to_newest = salvaged->copy == CheckpointCopy::newest;
  if (!to_newest && older.epoch == 0) {
    return Status::not_found(manifest->path() + ": there is no older checkpoint");
  }
  // Nothing that the older one needs was written over by the database, and the log from it on is kept; should anything
  // have been all the same, its checksums and span ids tell.
  std::unique_ptr<Tree> opened(
      new Tree(env, options, std::move(manifest), std::move(zones), std::move(to_newest ? newest : older)));
  opened->load_salvaged(salvaged);
  *tree = std::move(opened);
  return {};
}

}  // namespace vtkv
