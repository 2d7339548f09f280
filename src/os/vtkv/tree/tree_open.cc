// SPDX-License-Identifier: LGPL-2.1-or-later
// Making a tree's files, and opening them.

#include <algorithm>

#include "vtkv/tree/tree.h"

namespace vtkv {

namespace {

std::string zone_path(const std::string& directory) { return directory + "/tree"; }

}  // namespace

Status Tree::create(Env* env, const std::string& directory, const Geometry& geometry, const Uuid& uuid,
                    const LogPosition& start, const Features& features) {
  VTKV_RETURN_IF_ERROR(check_geometry(geometry));
  VTKV_RETURN_IF_ERROR(ZoneFile::create(env, zone_path(directory)));
  // The manifest's name says that the rest is there: the rest comes first.
  VTKV_RETURN_IF_ERROR(env->sync_directory(directory));
  Checkpoint first;
  first.epoch = 1;
  first.uuid = uuid;
  first.geometry = geometry;
  first.position = start;
  first.features = features;
  return Manifest::create(env, directory, first);
}

Status Tree::open_files(Env* env, const std::string& directory, std::unique_ptr<Manifest>* manifest,
                        std::shared_ptr<ZoneFile>* zones, Checkpoint* newest, Checkpoint* older) {
  VTKV_RETURN_IF_ERROR(Manifest::open(env, directory, manifest, newest, older));
  for (const Checkpoint* const checkpoint : {newest, older}) {
    VTKV_RETURN_IF_ERROR(checkpoint->features.check((*manifest)->path(), known_features(), /*to_write=*/false));
  }
  const std::string path = zone_path(directory);
  if (!env->exists(path)) {
    return Status::corruption(path + " is missing, although " + (*manifest)->path() +
                              " exists: restore the database, or give it up and make a new one");
  }
  return ZoneFile::open(env, path, newest->geometry.zone_bytes, zones);
}

Status Tree::open(Env* env, const std::string& directory, const Options& options, std::unique_ptr<Tree>* tree) {
  std::unique_ptr<Manifest> manifest;
  Checkpoint newest, older;
  std::shared_ptr<ZoneFile> zones;
  VTKV_RETURN_IF_ERROR(open_files(env, directory, &manifest, &zones, &newest, &older));
  std::unique_ptr<Tree> opened(new Tree(env, options, std::move(manifest), std::move(zones), std::move(newest)));
  VTKV_RETURN_IF_ERROR(opened->load(older));
  *tree = std::move(opened);
  return {};
}

Status Tree::open_runs(const std::vector<RunLocation>& locations, const Runs& known, OpenRun open, Runs* runs) const {
  for (const RunLocation& location : locations) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& run) { return run->location().run_id == location.run_id; });
    if (found != known.end()) {
      runs->push_back(*found);
      continue;
    }
    std::shared_ptr<const Run> run;
    VTKV_RETURN_IF_ERROR(open(m_reader, location, &run));
    runs->push_back(std::move(run));
  }
  return {};
}

Status Tree::load(const Checkpoint& older) {
  MutexLock checkpoint_lock(m_checkpoint_lock);
  Runs runs;
  VTKV_RETURN_IF_ERROR(open_runs(m_checkpoint.runs, {}, Run::open, &runs));
  m_features_agree = older.epoch == 0 || older.features == m_checkpoint.features;
  ManifestCopy copy{older.epoch, older.position, {}, older.segments};
  // Its runs are needed only should the newest copy be lost: if their descriptors cannot be read, it is no help.
  const bool older_is_good = older.epoch > 0 && open_runs(older.runs, runs, Run::open_unread, &copy.runs).ok();
  SortedRuns sorted_runs;
  VTKV_RETURN_IF_ERROR(make_sorted_runs(runs, m_checkpoint.runs, &sorted_runs));
  set_pressure(sorted_runs);
  MutexLock lock(m_lock);
  m_epoch = m_checkpoint.epoch;
  m_copies[m_epoch % 2] = {m_epoch, m_checkpoint.position, runs, m_checkpoint.segments};
  m_current = std::make_shared<RunVersion>(std::move(sorted_runs));
  if (older_is_good) {
    m_copies[older.epoch % 2] = std::move(copy);
  }
  return {};
}

}  // namespace vtkv
