// SPDX-License-Identifier: LGPL-2.1-or-later
// Log and tree of a store that no OSD uses move to another file system, or back.
//
//   1. A mark, in the store's directory, names both places. What is in the one that the store does not use is this
//      command's from now on.
//   2. Log and tree are copied, durably.
//   3. One write says where they are: of the superblock, or, from one such directory to another, of metadata_path.
//   4. What lies where they were is removed, then the mark, then what says whose that directory was.
//
// A crash before 3 leaves the store as it was, and later it has moved. What is left over then, the next move removes.

#include <optional>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"
#include "vtkv/util/mutations.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::MetadataMove;
using swimstore::Settings;
using swimstore::StoreDirectory;
using swimstore::Superblock;
using vtkv::mutated;
using vtkv::Mutation;
using vtkv::Status;

// A cube that is abandoned has what nobody else may have, and cannot be read as a whole.
Status SwimStore::check_all_whole() const {
  const swimstore::MissingCubes& missing = m_mounted->cubes->missing();
  return missing.empty()
             ? Status()
             : Status::failed(fmt::format(
                   "cube {0} of {1} is abandoned: {2}. Nothing was changed: make it anew with 'ceph-swimstore-tool "
                   "reset {1} --cube {0}' first",
                   missing.begin()->first, path, missing.begin()->second));
}

// What says where log and tree are may have been written just before a crash, or by a sync that failed: it becomes
// durable before anything is served from there, and before anything is removed where they are not.
Status SwimStore::settle_metadata_move(StoreDirectory& directory, const Superblock& superblock) {
  if (!directory.has_metadata_move()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(directory.or_sync(directory.write_superblock(superblock)));
  VTKV_RETURN_IF_ERROR(directory.or_sync(directory.renew_metadata_path()));
  const std::string& used = directory.metadata_directory();
  derr << "a move of log and tree was interrupted. They lie in " << (used.empty() ? directory.cubes_path() : used)
       << ", whole; files may be left where they do not lie. With the OSD stopped, this removes them: "
       << "ceph-swimstore-tool move-metadata " << path << (used.empty() ? " --back" : " --to " + used) << dendl;
  return {};
}

// REQUIRES: settled. By neither of its two paths, somebody has written another one of the directory into metadata_path,
// and which of the two is in use nobody can tell.
Status SwimStore::end_interrupted_move(StoreDirectory& directory, const Superblock& superblock) {
  std::optional<MetadataMove> move;
  VTKV_RETURN_IF_ERROR(directory.read_metadata_move(&move));
  if (!move) {
    return {};
  }
  const std::string& used = directory.metadata_directory();
  if (move->to != used && move->from != used) {
    return Status::failed(
        fmt::format("log and tree of {} lie in {}, and an interrupted move was from '{}' to '{}': write "
                    "the one of these paths into its file metadata_path that they lie in. Nothing was "
                    "changed",
                    path, used, move->from, move->to));
  }
  return directory.end_metadata_move(move->to == used ? move->from : move->to, superblock.cubes);
}

Status SwimStore::check_and_copy_metadata(StoreDirectory& directory, const MetadataMove& move,
                                          const Superblock& superblock, uint64_t* bytes) {
  const std::string& host_path = move.to.empty() ? path : move.to;
  Settings settings;
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(Settings::read(cct, &settings));
  VTKV_RETURN_IF_ERROR(directory.check_file_system(host_path, settings, &host));
  VTKV_RETURN_IF_ERROR(refuse_same_file_system(move.to, settings));
  VTKV_RETURN_IF_ERROR(
      refuse_unsafe_host(move.to.empty() ? directory.lock_path() : move.to + "/" + StoreDirectory::kOwner, settings));
  uint64_t needed = 0;
  VTKV_RETURN_IF_ERROR(directory.measure_metadata(move.from, superblock.cubes, &needed));
  needed += uint64_t{superblock.cubes} * superblock.geometry.log_segment_bytes;  // to go on with
  if (host.available_bytes < needed) {
    return Status::make(Status::Code::no_space,
                        fmt::format("log and tree need {} bytes, and the file system of {} has room for {}", needed,
                                    host_path, host.available_bytes),
                        ENOSPC);
  }
  return directory.copy_metadata(move, superblock.cubes, bytes);
}

// One write decides.
Status SwimStore::switch_metadata(StoreDirectory& directory, const MetadataMove& move, Superblock superblock) {
  VTKV_RETURN_IF_ERROR(directory.use_moved_metadata(move));
  if (move.from.empty() == move.to.empty()) {
    return {};
  }
  if (move.to.empty()) {
    superblock.features.incompat.erase(swimstore::kMetadataElsewhereFeature);
  } else {
    superblock.features.incompat.insert(swimstore::kMetadataElsewhereFeature);
  }
  superblock.version = swimstore::kSuperblockVersion;
  return directory.write_superblock(superblock);
}

Status SwimStore::move_metadata(const std::string& asked, uint64_t* bytes) {
  *bytes = 0;
  return hold_lock([&](StoreDirectory& directory) {
    std::string to = asked;
    std::optional<unsigned> added;
    VTKV_RETURN_IF_ERROR(to.empty() ? Status() : directory.normalize_metadata_path(&to));
    VTKV_RETURN_IF_ERROR(directory.read_added_cubes(&added));
    if (added) {
      return Status::failed(
          fmt::format("{} is there: an add-cubes was interrupted. Run it again first", directory.added_cubes_path()));
    }
    VTKV_RETURN_IF_ERROR(open(Purpose::serve));  // only what mounts is moved
    const Superblock superblock = m_mounted->superblock;
    const Status whole = check_all_whole();
    close();
    VTKV_RETURN_IF_ERROR(whole);
    Superblock ignored;
    VTKV_RETURN_IF_ERROR(directory.read_superblock(&ignored));  // where they lie
    VTKV_RETURN_IF_ERROR(end_interrupted_move(directory, superblock));
    const MetadataMove move{directory.metadata_directory(), to};
    if (move.from == move.to) {
      return Status();
    }
    std::unique_ptr<vtkv::FileLock> lock;
    VTKV_RETURN_IF_ERROR(directory.begin_metadata_move(move, superblock.cubes, &lock));
    const bool is_early = mutated(Mutation::metadata_used_before_copied);
    VTKV_RETURN_IF_ERROR(is_early ? switch_metadata(directory, move, superblock) : Status());
    if (const Status copied = check_and_copy_metadata(directory, move, superblock, bytes); !copied.ok()) {
      // What a failed sync should have covered may come back: the mark stays then.
      const bool may_end = copied.code() != Status::Code::io_error && !copied.is_corruption();
      lock.reset();
      const bool removed = may_end && directory.end_metadata_move(move.to, superblock.cubes).ok();
      return copied.with_message(fmt::format("{}. Log and tree of {} are where they were{}", copied.message(), path,
                                             removed ? "" : "; what was copied, the next move removes"));
    }
    if (const Status switched = switch_metadata(directory, move, superblock); !switched.ok()) {
      return switched.with_message(
          fmt::format("{}. Log and tree of {} are whole, and where, the next mount finds out: "
                      "look at the disk, then move them again",
                      switched.message(), path));
    }
    const Status ended = directory.end_metadata_move(move.from, superblock.cubes);
    return ended.ok() ? ended
                      : ended.with_message(fmt::format("{}. Log and tree of {} have moved; what they left in {}, the "
                                                       "same command again removes",
                                                       ended.message(), path,
                                                       move.from.empty() ? directory.cubes_path() : move.from));
  });
}
