// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/isolation/damaged_cubes.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/fsck/check_at_rest.h"
#include "swimstore/move/range_sweeper.h"

#define dout_context m_probe.cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore.isolation "

namespace swimstore {

using vtkv::Status;

Status find_abandoned_cubes(StoreDirectory& directory, unsigned cubes, MissingCubes* abandoned) {
  for (unsigned cube = 1; cube < cubes; ++cube) {
    std::optional<CubeMark> mark;
    VTKV_RETURN_IF_ERROR(directory.read_cube_mark(cube, &mark));
    if (mark && mark->state == CubeMark::State::abandoned) {
      abandoned->emplace(cube, mark->reason);
    }
  }
  return {};
}

Status keep_abandoned_cubes(StoreDirectory& directory, const MissingCubes& abandoned) {
  for (const auto& [cube, why] : abandoned) {
    VTKV_RETURN_IF_ERROR(directory.or_sync(directory.mark_cube(cube, {CubeMark::State::abandoned, why})));
  }
  return {};
}

Status DamagedCubes::find() {
  for (const auto& [cube, why] : m_probe.cubes.set().missing()) {
    if (!m_abandoned.contains(cube)) {
      m_damaged.emplace(cube, why);
    }
  }
  for (const auto& cube : m_probe.cubes) {
    VTKV_RETURN_IF_ERROR(check_suspect(*cube));
    if (!m_damaged.contains(cube->number)) {
      VTKV_RETURN_IF_ERROR(read_collections(*cube));
    }
  }
  return {};
}

namespace {

// The others are served as they are, and repair is for them.
bool is_unreadable(FindingClass kind) {
  switch (kind) {
    case FindingClass::store_does_not_open:
    case FindingClass::metadata_unreadable:
    case FindingClass::database_damaged:
    case FindingClass::collection_undecodable:
    case FindingClass::object_undecodable:
    case FindingClass::only_copy_undecodable:
    case FindingClass::extents_undecodable:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status DamagedCubes::check_suspect(StoreCube& cube) {
  std::optional<CubeMark> mark;
  if (cube.number != 0) {
    VTKV_RETURN_IF_ERROR(m_directory.read_cube_mark(cube.number, &mark));
  }
  if (!mark) {
    return {};
  }
  dout(0) << "cube " << cube.number << " is checked before it is used: " << mark->reason << dendl;
  const std::unique_ptr<Fsck> fsck = check_at_rest(m_probe, cube, {});
  const std::vector<Finding>& findings = fsck->findings();
  const auto unreadable = std::find_if(findings.begin(), findings.end(),
                                       [](const Finding& finding) { return is_unreadable(finding.kind); });
  if (unreadable == findings.end()) {
    dout(0) << "all metadata of cube " << cube.number << " can be read: it is used again" << dendl;
    // Anew first: behind a sync that failed the disk may still have one that says abandoned.
    VTKV_RETURN_IF_ERROR(m_directory.or_sync(m_directory.mark_cube(cube.number, *mark)));
    return m_directory.end_cube_mark(cube.number);
  }
  m_damaged.emplace(cube.number, fmt::format("{}; fsck finds {} errors, one of them: {}", mark->reason, fsck->errors(),
                                             unreadable->text));
  return {};
}

Status DamagedCubes::read_collections(StoreCube& cube) {
  const Status status = try_read_collections(cube);
  if (status.ok() || cube.number == 0 || !is_damage(status)) {
    return status;
  }
  m_damaged.emplace(cube.number, status.message());
  return {};
}

Status DamagedCubes::try_read_collections(StoreCube& cube) {
  std::vector<OutdatedRecord> outdated;
  VTKV_RETURN_IF_ERROR(m_probe.collections.load(cube.database(), cube.number, m_probe.cubes.size(), &outdated));
  for (const CollectionRef& collection : m_probe.collections.all()) {
    bool lies_here = false;
    {
      SharedLock lock(collection->lock);
      lies_here = collection->cid.is_pg() && collection->record.home() == cube.number;
    }
    if (lies_here) {
      VTKV_RETURN_IF_ERROR(check_readable(m_probe, *collection));
    }
  }
  std::vector<UnownedObjects> unowned;  // the mount is to remove them
  return RangeSweeper::list(cube, &unowned);
}

Status DamagedCubes::find_lost(std::vector<LostGroup>* lost) const {
  MissingCubes missing = m_damaged;
  missing.insert(m_abandoned.begin(), m_abandoned.end());
  const Status status = find_lost_groups(m_probe, missing, lost);
  return status.ok() ? status
                     : Status::failed(fmt::format("{}. The OSD cannot go on without it: {}. Nothing was changed: "
                                                  "repair the cube, or remove the OSD and make it anew",
                                                  names(), status.message()));
}

std::string DamagedCubes::names() const {
  const auto& [cube, why] = *m_damaged.begin();
  return m_damaged.size() == 1
             ? fmt::format("cube {} is damaged, {}", cube, why)
             : fmt::format("{} cubes are damaged, the first is cube {}, {}", m_damaged.size(), cube, why);
}

std::string DamagedCubes::mark_paths() const {
  std::string paths;
  for (const auto& [cube, why] : m_damaged) {
    paths += (paths.empty() ? "" : ", ") + m_directory.cube_mark_path(cube);
  }
  return paths;
}

Status DamagedCubes::abandon() {
  if (m_abandoned.size() + m_damaged.size() >= m_probe.cubes.size() - 1) {
    return Status::failed(
        fmt::format("{}. No cube that holds placement groups is left: check the disk, then remove the "
                    "OSD and make it anew",
                    names()));
  }
  // A path to the disk that failed for a moment is likelier than several damaged cubes, and the decision is for ever.
  // Where an operator has given up one, whose groups were not made anew yet, this is one of several.
  std::vector<LostGroup> of_abandoned;
  if (!m_abandoned.empty()) {
    VTKV_RETURN_IF_ERROR(find_lost_groups(m_probe, m_abandoned, &of_abandoned));
  }
  if (m_damaged.size() > 1 || !of_abandoned.empty()) {
    return Status::failed(fmt::format(
        "{}. More than one at a time is not given up by itself, and nothing was changed: check the disk and "
        "what it is attached to, and start the OSD again. To go on without those that are damaged all the "
        "same, write 'abandoned: ' and why into a file for each: {}",
        names(), mark_paths()));
  }
  std::vector<LostGroup> lost;
  VTKV_RETURN_IF_ERROR(find_lost(&lost));
  for (const auto& [cube, why] : m_damaged) {
    VTKV_RETURN_IF_ERROR(m_directory.mark_cube(cube, {CubeMark::State::abandoned, why}));
    derr << "cube " << cube << " is abandoned, the others are served: " << why << dendl;
  }
  return {};
}

Status DamagedCubes::refusal(bool is_tool) const {
  std::vector<LostGroup> lost;
  VTKV_RETURN_IF_ERROR(find_lost(&lost));
  return Status::failed(fmt::format(
      "{0}. {1} placement groups lie there; the other cubes open. Nothing was changed{2}. Check the disk. Where "
      "'ceph-swimstore-tool fsck {4} --cube {3}' finds only object_undecodable, extents_undecodable or "
      "only_copy_undecodable, 'repair {4} --cube {3}' quarantines these objects; the own object of a placement group "
      "only with --only-copies, which gives up what this OSD has of that group. A damaged block of tree or log, or "
      "the record of a collection, no repair restores. To let the OSD serve the other cubes, set "
      "swimstore_mount_damaged_cubes=incomplete in ceph.conf and start it: Ceph fills those groups anew from their "
      "peers, and one that no peer has a new enough copy of stays incomplete. "
      "'ceph-swimstore-tool export {4} --salvage --cube {3} --out FILE' reads what the cube has",
      names(), lost.size(), is_tool ? ": to go on without a cube is decided by an OSD, not by a tool" : "",
      m_damaged.begin()->first, m_directory.path()));
}

}  // namespace swimstore
