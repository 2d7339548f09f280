// SPDX-License-Identifier: LGPL-2.1-or-later
// A store that no OSD uses gets more cubes.
//
//   1. A mark, in the store's directory: what lies where the new cubes will is this command's.
//   2. The new cubes are made, durably.
//   3. The superblock: from now on the store has them.
//   4. The mark goes.
//   5. A mount. In a store that had one cube it brings cube 0 into the form that it has beside others (CubeDivision),
//   and
//      makes witnesses of the placement groups. An earlier mount, by whoever, does that as well.
//
// A crash before 3 leaves the store as it was, and files that the next attempt removes.

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/move/cube_division.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"
#include "vtkv/util/mutations.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::CubeOptions;
using swimstore::CubeSet;
using swimstore::Settings;
using swimstore::StoreDirectory;
using swimstore::Superblock;
using vtkv::Status;

namespace {

// What an empty cube takes at once, of any sizes, beside its log and the copies of its manifest.
constexpr uint64_t kCubeFilesBytes = 1u << 20;

uint64_t made_bytes(const CubeOptions& options) {
  const vtkv::Geometry& geometry = options.database.geometry;
  return geometry.initial_log_segments * geometry.log_segment_bytes + 2 * geometry.zone_bytes + kCubeFilesBytes;
}

Status check_count(const std::string& path, unsigned has, unsigned asked) {
  if (asked == 0 || asked >= CubeSet::kDataCubesMax * 2 || !CubeSet::is_valid_count(CubeSet::cubes_for(asked))) {
    return Status::invalid_argument(fmt::format(
        "placement groups are spread over 1, 2, 4, ... up to {} cubes, not over {}", CubeSet::kDataCubesMax, asked));
  }
  return asked >= has
             ? Status()
             : Status::invalid_argument(fmt::format(
                   "{} spreads its placement groups over {} cubes already, and none is taken away", path, has));
}

}  // namespace

// The sizes of a store that is made with so many, whose totals are what this one was made with. None is larger than it
// was.
CubeOptions SwimStore::options_of_new_cubes(Settings settings, const Superblock& superblock, bool single_flush,
                                            unsigned cubes) {
  const unsigned had = CubeSet::data_cubes(superblock.cubes);
  settings.geometry = superblock.geometry;
  settings.geometry.log_segment_bytes *= had;
  settings.chunk_bytes = superblock.chunk_bytes * had;
  CubeOptions options = CubeSet::layout(cube_options(settings, single_flush), cubes);
  uint64_t& segment_bytes = options.database.geometry.log_segment_bytes;
  segment_bytes = std::min(segment_bytes, superblock.geometry.log_segment_bytes);
  options.containers.chunk_bytes = std::min(options.containers.chunk_bytes, superblock.chunk_bytes);
  return options;
}

// Changes nothing but what a mount does.
Status SwimStore::check_before_adding(unsigned cubes, CubeOptions* options) {
  VTKV_RETURN_IF_ERROR(open(Purpose::serve));
  Status status;
  const Superblock& superblock = m_mounted->superblock;
  if (const swimstore::MissingCubes& missing = m_mounted->cubes->missing(); !missing.empty()) {
    status = Status::failed(
        fmt::format("cube {0} of {1} is abandoned: {2}. Nothing was changed: make it anew with 'ceph-swimstore-tool "
                    "reset {1} --cube {0}' before cubes are added",
                    missing.begin()->first, path, missing.begin()->second));
  }
  uint64_t bytes = 0;
  if (status.ok() && superblock.cubes == 1) {
    status = swimstore::CubeDivision(m_mounted->context).measure(&bytes);
    if (!status.ok()) {
      status = Status::make(status.code(),
                            fmt::format("{}. Nothing was changed: 'ceph-swimstore-tool fsck {}' tells "
                                        "what is damaged",
                                        status.message(), path),
                            status.error_number());
    }
  }
  Settings settings;
  if (status.ok()) {
    status = Settings::read(cct, &settings);
  }
  if (status.ok()) {
    *options = options_of_new_cubes(settings, superblock, m_mounted->single_flush, cubes);
    bytes += (cubes - superblock.cubes) * made_bytes(*options);
    const uint64_t has = m_mounted->cubes->container_statistics().growable_bytes;
    if (has < bytes) {
      status = Status::make(Status::Code::no_space,
                            fmt::format("{} new cubes take {} bytes to begin with, and the host of {} has room for {} "
                                        "beside the reserve. Nothing was changed: make room, or add fewer",
                                        cubes - superblock.cubes, bytes, path, has),
                            ENOSPC);
    }
  }
  close();
  return status;
}

Status SwimStore::make_new_cubes(StoreDirectory& directory, const CubeOptions& options, unsigned first,
                                 unsigned cubes) {
  for (unsigned cube = first; cube < cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(directory.end_cube_mark(cube));  // of a store that was here before
    VTKV_RETURN_IF_ERROR(CubeSet::create_one(m_env, directory.cubes_path(), options, cubes, cube));
  }
  return {};
}

Status SwimStore::add_cubes(unsigned data_cubes, unsigned* had) {
  return hold_lock([&](StoreDirectory& directory) {
    Superblock superblock;
    VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
    *had = CubeSet::data_cubes(superblock.cubes);
    VTKV_RETURN_IF_ERROR(check_count(path, *had, data_cubes));
    const unsigned first = superblock.cubes;
    const unsigned cubes = CubeSet::cubes_for(data_cubes);
    if (cubes > first) {
      CubeOptions options;
      VTKV_RETURN_IF_ERROR(check_before_adding(cubes, &options));
      VTKV_RETURN_IF_ERROR(directory.begin_adding_cubes(first, cubes));
      superblock.cubes = cubes;
      superblock.chunk_bytes = options.containers.chunk_bytes;
      superblock.geometry = options.database.geometry;
      if (first == 1) {
        superblock.version = swimstore::kSuperblockVersion;
        superblock.features.add(swimstore::features_of(cubes));
        superblock.features.ro_compat.insert(swimstore::kGroupsInCube0Feature);
      }
      const bool is_early = vtkv::mutated(vtkv::Mutation::cubes_added_before_made);
      VTKV_RETURN_IF_ERROR(is_early ? superblock.write(m_env, path) : Status());
      if (const Status made = make_new_cubes(directory, options, first, cubes); !made.ok()) {
        // Not the mark, where it is more than a lack of room: what a failed sync should have covered may come back.
        Status removed = directory.begin_adding_cubes(first, cubes);
        removed = removed.ok() && made.is_no_space() ? directory.end_adding_cubes() : removed;
        return Status::make(made.code(),
                            fmt::format("{}. {} is as it was{}", made.message(), path,
                                        removed.ok() ? "" : ", but for files that the next add-cubes removes"),
                            made.error_number());
      }
      VTKV_RETURN_IF_ERROR(superblock.write(m_env, path));
      VTKV_RETURN_IF_ERROR(directory.end_adding_cubes());
    }
    VTKV_RETURN_IF_ERROR(open(Purpose::serve));
    close();
    return Status();
  });
}

// With the mark the superblock becomes durable, if it was not: nothing is served before.
Status SwimStore::settle_added_cubes(StoreDirectory& directory, const Superblock& superblock) {
  unsigned cubes = 0;
  VTKV_RETURN_IF_ERROR(directory.read_added_cubes(&cubes));
  if (cubes > superblock.cubes) {
    derr << "add-cubes was interrupted, and the store is as it was: run 'ceph-swimstore-tool add-cubes " << path
         << " --to " << CubeSet::data_cubes(cubes) << "' again, or its files keep their room" << dendl;
    return {};
  }
  return cubes == 0 ? Status() : directory.end_adding_cubes();
}
