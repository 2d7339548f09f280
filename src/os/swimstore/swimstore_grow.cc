// SPDX-License-Identifier: LGPL-2.1-or-later
// A store that no OSD uses gets more cubes.
//
//   1. A mark, in the store's directory: what lies where the new cubes will is this command's.
//   2. The new cubes are made, durably.
//   3. The superblock: from now on the store has them.
//   4. The mark goes.
//   5. A mount. In a store that had one cube it brings cube 0 into the form that it has beside others, by CubeDivision,
//      and makes witnesses of the placement groups. An earlier mount, by whoever, does that as well.
//
// A crash before 3 leaves the store as it was, and files that the next attempt removes, with the mark, before it
// begins.

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/container/container.h"
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

// What an empty cube takes at once of any sizes, beside its log, the copies of its manifest and its containers.
constexpr uint64_t kCubeFilesBytes = 1u << 20;

uint64_t made_database_bytes(const vtkv::Geometry& geometry) {
  return geometry.initial_log_segments * geometry.log_segment_bytes + 2 * geometry.zone_bytes;
}

uint64_t made_container_bytes(const CubeOptions& options, const vtkv::FileSystemInfo& host) {
  uint64_t bytes = kCubeFilesBytes;
  for (unsigned size_class = 0; size_class < swimstore::kSizeClasses; ++size_class) {
    bytes += swimstore::Container::created_bytes(size_class, options.containers, host);
  }
  return bytes;
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

Status check_room(unsigned added, uint64_t bytes, const std::string& path, uint64_t has, const char* beside = "") {
  return has >= bytes ? Status()
                      : Status::make(Status::Code::no_space,
                                     fmt::format("{} new cubes take {} bytes to begin with, and the file system of {} "
                                                 "has room for {}{}. Nothing was changed: make room, or add fewer",
                                                 added, bytes, path, has, beside),
                                     ENOSPC);
}

std::string describe_damaged_mark(const StoreDirectory& directory, unsigned cubes) {
  return fmt::format(
      "{0} does not hold a number of cubes, and should: an add-cubes was interrupted, and the store has {1} cubes. "
      "Remove what is there of {2} and of those with greater numbers, and then this file",
      directory.added_cubes_path(), cubes, directory.cube_path(cubes));
}

Status remove_interrupted(StoreDirectory& directory, unsigned cubes) {
  std::optional<unsigned> marked;
  VTKV_RETURN_IF_ERROR(directory.read_added_cubes(&marked));
  if (!marked) {
    return {};
  }
  if (!CubeSet::is_valid_count(*marked)) {
    return Status::failed(describe_damaged_mark(directory, cubes));
  }
  VTKV_RETURN_IF_ERROR(directory.empty_new_cubes(cubes, *marked));
  return directory.end_adding_cubes();
}

// Not the mark, where it is more than a lack of room: what a failed sync should have covered may come back.
Status undo_adding(StoreDirectory& directory, unsigned first, unsigned cubes, const Status& why) {
  Status removed = directory.empty_new_cubes(first, cubes);
  removed = removed.ok() && why.is_no_space() ? directory.end_adding_cubes() : removed;
  return why.with_message(
      fmt::format("{}. {} is as it was{}: {}", why.message(), directory.path(),
                  removed.ok() ? "" : ", but for files that the next add-cubes removes",
                  why.is_no_space() ? "make room, or add fewer" : "look at the disk, then run add-cubes again"));
}

}  // namespace

// The sizes of a store that is made with so many, whose totals are what this one was made with. None is larger than it
// was. Their databases have the features of cube 0's, whatever the option says: no older program refuses the store
// because of them, and none of them stays plain among others that are compressed.
CubeOptions SwimStore::options_of_new_cubes(Settings settings, const Superblock& superblock, unsigned cubes) {
  const unsigned had = CubeSet::data_cubes(superblock.cubes);
  settings.geometry = superblock.geometry;
  settings.geometry.log_segment_bytes *= had;
  settings.chunk_bytes = superblock.chunk_bytes * had;
  CubeOptions options = CubeSet::layout(cube_options(settings, m_mounted->layout), cubes);
  uint64_t& segment_bytes = options.database.geometry.log_segment_bytes;
  segment_bytes = std::min(segment_bytes, superblock.geometry.log_segment_bytes);
  options.containers.chunk_bytes = std::min(options.containers.chunk_bytes, superblock.chunk_bytes);
  options.database.compress_blocks = m_mounted->cubes->may_compress_blocks();
  return options;
}

// Of the mounted store. Changes nothing.
Status SwimStore::check_before_adding(unsigned cubes, CubeOptions* options) {
  const Superblock& superblock = m_mounted->superblock;
  VTKV_RETURN_IF_ERROR(check_all_whole());
  uint64_t database_bytes = 0;
  if (superblock.cubes == 1) {
    Status measured = swimstore::CubeDivision(m_mounted->context).measure(&database_bytes);
    if (measured.code() == Status::Code::failed) {
      return measured;
    }
    if (!measured.ok()) {
      return measured.with_message(
          fmt::format("{}. Nothing was changed: 'ceph-swimstore-tool fsck {}' tells what is "
                      "damaged",
                      measured.message(), path));
    }
  }
  Settings settings;
  VTKV_RETURN_IF_ERROR(Settings::read(cct, &settings));
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(path, &host));
  *options = options_of_new_cubes(settings, superblock, cubes);
  const unsigned added = cubes - superblock.cubes;
  database_bytes += added * made_database_bytes(options->database.geometry);
  const uint64_t container_bytes = added * made_container_bytes(*options, host);
  const uint64_t room = m_mounted->cubes->container_statistics().growable_bytes;
  constexpr const char* kBeside = " beside the reserve";
  const std::string& metadata = m_mounted->layout.metadata_directory;
  if (metadata.empty()) {
    return check_room(added, database_bytes + container_bytes, path, room, kBeside);
  }
  vtkv::FileSystemInfo metadata_host;
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(metadata, &metadata_host));
  VTKV_RETURN_IF_ERROR(check_room(added, database_bytes, metadata, metadata_host.available_bytes));
  return check_room(added, container_bytes, path, room, kBeside);
}

// And names them in the superblock.
Status SwimStore::make_new_cubes(StoreDirectory& directory, const CubeOptions& options, unsigned first,
                                 unsigned cubes) {
  Superblock superblock;
  VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
  superblock.cubes = cubes;
  superblock.chunk_bytes = options.containers.chunk_bytes;
  superblock.geometry = options.database.geometry;
  if (first == 1) {
    superblock.version = swimstore::kSuperblockVersion;
    superblock.features.ro_compat.insert({swimstore::kWitnessFeature, swimstore::kGroupsInCube0Feature});
  }
  const bool is_early = vtkv::mutated(vtkv::Mutation::cubes_added_before_made);
  VTKV_RETURN_IF_ERROR(is_early ? directory.write_superblock(superblock) : Status());
  Status made;
  for (unsigned cube = first; cube < cubes && made.ok(); ++cube) {
    made = directory.end_cube_mark(cube);  // of a store that was here before
    made = made.ok() ? CubeSet::create_one(m_env, directory.cubes_path(), options, cubes, cube) : made;
  }
  if (!made.ok()) {
    return undo_adding(directory, first, cubes, made);
  }
  const Status written = directory.write_superblock(superblock);
  Superblock found;
  if (written.is_no_space() && directory.read_superblock(&found).ok() && found.cubes == first) {
    return undo_adding(directory, first, cubes, written);
  }
  return written.ok() ? written
                      : written.with_message(fmt::format("{}. Whether {} has its new cubes the next mount finds out: "
                                                         "look at the disk, then run add-cubes again",
                                                         written.message(), path));
}

Status SwimStore::add_cubes(unsigned data_cubes, unsigned* had) {
  return hold_lock([&](StoreDirectory& directory) {
    Superblock superblock;
    VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
    *had = CubeSet::data_cubes(superblock.cubes);
    VTKV_RETURN_IF_ERROR(check_count(path, *had, data_cubes));
    const unsigned cubes = CubeSet::cubes_for(data_cubes);
    // What an interrupted attempt left takes room, and goes first; but not before a mount found the superblock good.
    VTKV_RETURN_IF_ERROR(open(Purpose::serve));
    Status status = remove_interrupted(directory, superblock.cubes);
    CubeOptions options;
    if (status.ok() && cubes > superblock.cubes) {
      status = check_before_adding(cubes, &options);
    }
    close();
    if (!status.ok() || cubes == superblock.cubes) {
      return status;
    }
    VTKV_RETURN_IF_ERROR(directory.claim_new_cubes(superblock.cubes, cubes));
    VTKV_RETURN_IF_ERROR(make_new_cubes(directory, options, superblock.cubes, cubes));
    status = directory.end_adding_cubes();
    if (status.ok()) {
      status = open(Purpose::serve);
    }
    if (!status.ok()) {
      return status.with_message(
          fmt::format("{}. {} has its new cubes, {} in all for placement groups: the next "
                      "mount, or add-cubes again, ends what is left",
                      status.message(), path, data_cubes));
    }
    close();
    return Status();
  });
}

// Where there is a mark the superblock may have been written just before a crash, or by a sync that failed: it becomes
// durable first, so nothing is served, and the mark does not go, before it is.
Status SwimStore::settle_added_cubes(StoreDirectory& directory, const Superblock& superblock) {
  std::optional<unsigned> marked;
  VTKV_RETURN_IF_ERROR(directory.read_added_cubes(&marked));
  if (!marked) {
    const std::string beyond = directory.database_path(superblock.cubes);
    return m_env->exists(beyond + "/manifest")
               ? Status::failed(fmt::format("{} holds a cube, and {}/superblock says that there are {}: is it an old "
                                            "copy? Nothing was changed: bring back a newer one, or, if that cube is "
                                            "not of this store, move it away",
                                            beyond, path, superblock.cubes))
               : Status();
  }
  VTKV_RETURN_IF_ERROR(directory.or_sync(directory.write_superblock(superblock)));
  if (!CubeSet::is_valid_count(*marked)) {
    derr << describe_damaged_mark(directory, superblock.cubes) << dendl;
    return {};
  }
  if (*marked > superblock.cubes) {
    derr << "add-cubes was interrupted, and the store is as it was: run 'ceph-swimstore-tool add-cubes " << path
         << " --to " << CubeSet::data_cubes(*marked) << "' again, or, to have the room of its files back, with --to "
         << CubeSet::data_cubes(superblock.cubes) << dendl;
    return {};
  }
  return directory.end_adding_cubes();
}
