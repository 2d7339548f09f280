// SPDX-License-Identifier: LGPL-2.1-or-later
// Placement groups that go from cube to cube of a store that no OSD uses, as an operator asks for it.

#include <fmt/format.h>

#include "common/errno.h"
#include "swimstore/move/collection_copier.h"
#include "swimstore/move/collection_mover.h"
#include "swimstore/move/group_balance.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"

using swimstore::Collection;
using swimstore::CollectionRef;
using swimstore::CubeSet;
using swimstore::ExclusiveLock;
using swimstore::GroupMove;
using swimstore::GroupSize;
using swimstore::LackingRoom;
using vtkv::Status;

namespace {

Status move_failed(const std::string& path, int r, const GroupMove& move, unsigned lies_in,
                   const LackingRoom& lacking) {
  const std::string what =
      fmt::format("collection {} cannot be moved from cube {} to cube {}", move.cid.to_str(), move.from, move.to);
  if (!lacking.need.is_none()) {
    return Status::make(
        Status::Code::no_space,
        fmt::format("{}: the copy {}needs {} bytes there, and {} of log and tree, for which neither that cube nor the "
                    "host has room. It lies in cube {}, whole: make room on the host (on that of log and tree, where "
                    "they lie elsewhere and it is full){}",
                    what, lacking.cut_short > 0 ? "was cut short, and " : "", lacking.need.slot_bytes,
                    lacking.need.metadata_bytes, lies_in,
                    move.from == 0 ? ", or try again: what has left cube 0 is given back meanwhile" : ""),
        ENOSPC);
  }
  const std::string why = r == -EEXIST
                              ? fmt::format("objects of its range lie in cube {} already, in no collection", move.to)
                              : cpp_strerror(r);
  return Status::make(Status::Code::failed,
                      fmt::format("{}: {}. It lies in cube {}, whole; what was copied is removed by the next mount. "
                                  "'ceph-swimstore-tool fsck {}' tells what is damaged",
                                  what, why, lies_in, path),
                      -r);
}

}  // namespace

// What its blocks take of slots, and where it lies.
Status SwimStore::measure_group(Collection& group, GroupSize* size) {
  ExclusiveLock lock(group.lock);
  swimstore::StoreCube& home = m_mounted->context.home(group);
  swimstore::CopyPace in_one_go;
  swimstore::CollectionCopier copier(m_mounted->context, m_mounted->pipeline, group, group, home, home, in_one_go);
  *size = {group.cid, home.number, 0};
  const int r = copier.measure(&size->slot_bytes);
  return r == 0 ? Status()
                : Status::make(Status::Code::failed,
                               fmt::format("the extents of collection {} in cube {} cannot be read, {}; nothing was "
                                           "moved. 'ceph-swimstore-tool fsck {}' tells what is damaged",
                                           group.cid.to_str(), home.number, cpp_strerror(r), path),
                               -r);
}

Status SwimStore::move_measured(Collection& group, const GroupMove& move) {
  ExclusiveLock lock(group.lock);
  LackingRoom lacking;
  const int r = swimstore::CollectionMover(m_mounted->context, m_mounted->pipeline).move(group, move.to, &lacking);
  return r == 0 ? Status() : move_failed(path, r, move, group.record.home(), lacking);
}

Status SwimStore::move_group(const coll_t& cid, unsigned cube, GroupMove* move) {
  VTKV_RETURN_IF_ERROR(open(Purpose::serve));
  Status status = m_mounted->mover.check_target(cube);
  const CollectionRef group = m_mounted->context.collections.find(cid);
  if (status.ok() && !cid.is_pg()) {
    status = Status::invalid_argument(fmt::format("{} is no placement group, and stays in cube 0", cid.to_str()));
  }
  if (status.ok() && !group) {
    status = Status::not_found(
        fmt::format("{} has no placement group {}; list --collections prints them", path, cid.to_str()));
  }
  GroupSize size;
  if (status.ok()) {
    status = measure_group(*group, &size);
  }
  if (status.ok()) {
    *move = {cid, size.cube, cube, size.slot_bytes};
    status = size.cube == cube ? Status() : move_measured(*group, *move);
  }
  close();
  return status;
}

Status SwimStore::balance_cubes(bool only_plan, const std::function<void(const GroupMove&)>& moved) {
  VTKV_RETURN_IF_ERROR(open(Purpose::serve));
  const std::vector<unsigned> targets = m_mounted->mover.targets();
  Status status;
  std::vector<GroupSize> groups;
  for (const CollectionRef& group : m_mounted->context.collections.all()) {
    if (status.ok() && group->cid.is_pg() && !targets.empty()) {
      status = measure_group(*group, &groups.emplace_back());
    }
  }
  Status passed_over;
  for (const GroupMove& move : status.ok() ? swimstore::plan_balance(groups, targets) : std::vector<GroupMove>()) {
    const Status done = only_plan ? Status() : move_measured(*m_mounted->context.collections.find(move.cid), move);
    if (done.is_no_space() || done.error_number() == EEXIST) {
      passed_over = done;  // others may go all the same
    } else if (!done.ok()) {
      status = done;
      break;
    } else {
      moved(move);
    }
  }
  close();
  return status.ok() ? passed_over : status;
}

Status SwimStore::move_in_use(const coll_t& cid, unsigned cube, const swimstore::MoveLimits& limits,
                              const std::function<void()>& between) {
  return m_mounted->mover.move_now(cid, cube, limits, between);
}
