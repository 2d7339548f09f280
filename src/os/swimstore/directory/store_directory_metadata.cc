// SPDX-License-Identifier: LGPL-2.1-or-later
// Log and tree on another file system: whose directory that is, and their way there and back.
//
// The steps of a move, and what a crash leaves of them: swimstore_metadata.cc.

#include <algorithm>

#include <fmt/format.h>

#include "swimstore/directory/store_directory.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr const char* kMoving = "move_metadata_unfinished";
constexpr const char* kContainers = "containers";
constexpr const char* kPartOf = "part_of";  // beside a database, and no part of it
constexpr const char* kLostAndFound = "lost+found";  // of an ext4, root's
constexpr const char* kInTheCubes = "-";  // in the mark
constexpr char kBetween = '\t';
constexpr size_t kCopyBytes = 4u << 20;

// Of the system, where a directory is to be made, or written to.
Status explain_refusal(const Status& status) {
  const int error = status.error_number();
  const char* wanted = error == ENOENT || error == ENOTDIR ? "on a file system that is mounted, below one that is there"
                       : error == EACCES || error == EPERM ? "that is of the user whom the OSD runs as"
                                                           : "";
  return *wanted == '\0'
             ? status
             : status.with_message(fmt::format("{}: log and tree need a directory {}", status.message(), wanted));
}

std::string name_of(const std::string& directory) { return directory.empty() ? kInTheCubes : directory; }
std::string place_of(std::string_view name) { return name == kInTheCubes ? std::string() : std::string(name); }

// What of the file has space. A tree is as long as it ever was, and most of it may have been given back to the host.
// All of it where the host does not tell.
Status find_data(vtkv::File& file, std::vector<vtkv::FileRange>* ranges, uint64_t* file_bytes) {
  VTKV_RETURN_IF_ERROR(file.size(file_bytes));
  vtkv::FileSpace space;
  const Status mapped = file.map_space(&space);
  VTKV_RETURN_IF_ERROR(mapped.code() == Status::Code::unsupported ? Status() : mapped);
  uint64_t at = 0;
  space.holes.push_back({*file_bytes, 0});
  for (const vtkv::FileRange& hole : space.holes) {
    if (hole.offset > at) {
      ranges->push_back({at, hole.offset - at});
    }
    at = std::max(at, hole.offset + hole.length);
  }
  return {};
}

// What was never written is written with zeros, so a log segment keeps its room.
Status copy_file(vtkv::Env* env, const std::string& from, const std::string& to, uint64_t* copied) {
  std::unique_ptr<vtkv::File> in, out;
  VTKV_RETURN_IF_ERROR(env->open_file(from, {.read_only = true, .direct = false}, &in));
  VTKV_RETURN_IF_ERROR(env->open_file(to, {.create = true, .direct = false}, &out));
  uint64_t bytes = 0;
  std::vector<vtkv::FileRange> ranges;
  VTKV_RETURN_IF_ERROR(find_data(*in, &ranges, &bytes));
  std::string buffer(std::min<uint64_t>(bytes, kCopyBytes), '\0');
  for (const vtkv::FileRange& range : ranges) {
    for (uint64_t done = 0; done < range.length; done += buffer.size()) {
      const size_t length = std::min<uint64_t>(buffer.size(), range.length - done);
      VTKV_RETURN_IF_ERROR(in->read(range.offset + done, length, buffer.data()));
      VTKV_RETURN_IF_ERROR(out->write(range.offset + done, buffer.data(), length));
    }
    *copied += range.length;
  }
  VTKV_RETURN_IF_ERROR(out->truncate(bytes));
  return out->sync();
}

}  // namespace

std::string StoreDirectory::database_path_in(const std::string& metadata_directory, unsigned cube) const {
  return metadata_directory.empty() ? cube_path(cube) : fmt::format("{}/{}", metadata_directory, cube);
}

std::string StoreDirectory::database_path(unsigned cube) const { return database_path_in(m_metadata_directory, cube); }

std::vector<std::string> StoreDirectory::file_of_each_host() const {
  std::vector<std::string> files{lock_path()};
  if (!m_metadata_directory.empty()) {
    files.push_back(m_metadata_directory + "/" + kOwner);
  }
  return files;
}

// ---- whose it is

// The superblock's, where it was read: the file may be lost.
Status StoreDirectory::own_fsid(std::string* fsid) {
  *fsid = m_fsid;
  return m_fsid.empty() ? read_meta(kOwner, fsid) : Status();
}

bool StoreDirectory::owns(const std::string& directory) {
  std::string fsid, owner;
  return own_fsid(&fsid).ok() && StoreDirectory(m_env, directory).read_meta(kOwner, &owner).ok() && owner == fsid;
}

Status StoreDirectory::normalize_metadata_path(std::string* path) const {
  const std::string asked = *path;
  while (path->size() > 1 && path->ends_with('/')) {
    path->pop_back();
  }
  const bool is_plain = fits_a_line(*path) && (*path + "/").find("/../") == std::string::npos;
  std::string own = m_path;
  while (own.size() > 1 && own.ends_with('/')) {
    own.pop_back();
  }
  if (!path->starts_with('/') || !is_plain || (*path + "/").starts_with(own + "/")) {
    return Status::invalid_argument(
        fmt::format("log and tree need a directory outside of {}, named from / on and without "
                    "'..', not '{}'",
                    m_path, asked));
  }
  return {};
}

Status StoreDirectory::take_metadata_directory(std::string* directory, std::unique_ptr<vtkv::FileLock>* lock) {
  std::string claimed;
  VTKV_RETURN_IF_ERROR(normalize_metadata_path(directory));
  const bool is_again = read_meta(kMetadataPath, &claimed).ok() && claimed == *directory;
  return prepare_metadata_directory(*directory, is_again, lock);
}

Status StoreDirectory::make_metadata_directory(const std::string& directory) {
  VTKV_RETURN_IF_ERROR(write_meta(kMetadataPath, directory));
  VTKV_RETURN_IF_ERROR(claim_metadata_directory(directory));
  m_metadata_directory = directory;
  return {};
}

Status StoreDirectory::forget_other_metadata() {
  VTKV_RETURN_IF_ERROR(remove_mark(kMoving));
  return m_metadata_directory.empty() ? remove_mark(kMetadataPath) : Status();
}

// Looked at before it is locked, too: a stranger's directory gets no file of ours.
Status StoreDirectory::prepare_metadata_directory(const std::string& directory, bool may_hold_ours,
                                                  std::unique_ptr<vtkv::FileLock>* lock) {
  if (const Status made = m_env->create_directory(directory); !made.ok()) {
    return explain_refusal(made);
  }
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(directory.substr(0, std::max<size_t>(directory.rfind('/'), 1))));
  VTKV_RETURN_IF_ERROR(refuse_what_is_in(directory, may_hold_ours));
  const Status locked = m_env->lock_file(directory + "/" + kLock, lock);
  if (locked.code() == Status::Code::busy) {
    return Status::busy(fmt::format(
        "another command makes {} the place of log and tree just now. Nothing was changed: name another directory",
        directory));
  }
  return locked.ok() ? refuse_what_is_in(directory, may_hold_ours) : explain_refusal(locked);
}

// Small files alone are what an interrupted command has left.
Status StoreDirectory::refuse_what_is_in(const std::string& directory, bool may_hold_ours) {
  const bool is_ours = owns(directory);
  if (may_hold_ours && is_ours) {
    return {};
  }
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(m_env->list_directory(directory, &names));
  std::string found;
  for (const std::string& name : names) {
    if (found.empty() && name != kLostAndFound && !is_small_file(name)) {
      VTKV_RETURN_IF_ERROR(find_file(directory + "/" + name, &found));
    }
  }
  if (found.empty()) {
    return {};
  }
  return Status::invalid_argument(
      is_ours ? fmt::format("{} has log and tree of this store already, maybe by another path: nothing was changed",
                            directory)
              : fmt::format("{} is there, maybe of another store, and log and tree need a directory of their own. It "
                            "was left alone: name another directory, or look at this one and empty it",
                            found));
}

// `fsid` is written first and removed last: no directory without ours is ever emptied.
Status StoreDirectory::claim_metadata_directory(const std::string& directory) {
  std::string fsid;
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(own_fsid(&fsid));
  VTKV_RETURN_IF_ERROR(owns(directory) ? Status() : StoreDirectory(m_env, directory).write_meta(kOwner, fsid));
  VTKV_RETURN_IF_ERROR(m_env->list_directory(directory, &names));
  for (const std::string& name : names) {
    const bool stays = name == kLostAndFound || name == kOwner || name == kLock;
    VTKV_RETURN_IF_ERROR(stays ? Status() : remove_name(directory + "/" + name));
  }
  return m_env->sync_directory(directory);
}

// Of a store whose superblock cannot be read, to be salvaged.
void StoreDirectory::guess_metadata_directory() {
  std::string directory;
  if (read_meta(kMetadataPath, &directory).ok() && !m_env->exists(cube_path(0) + "/manifest")) {
    m_metadata_directory = directory;
  }
}

// A move takes the file away when it takes log and tree back: where it is, and they are not in the cubes, the
// superblock is older than the move.
Status StoreDirectory::refuse_old_superblock() {
  guess_metadata_directory();
  return m_metadata_directory.empty()
             ? Status()
             : Status::failed(fmt::format("{0}/superblock says that log and tree lie in the cubes, where they are not, "
                                          "and {1} that they lie in {2}: it is a copy from before they were moved. "
                                          "Bring back a newer one; if there is none, 'ceph-swimstore-tool export {0} "
                                          "--salvage --out FILE' reads what is there",
                                          m_path, file(kMetadataPath), m_metadata_directory));
}

// Looked at before anything in it: an empty directory below a file system that is not mounted would look like a store
// that has lost everything.
Status StoreDirectory::find_metadata_directory() {
  if (const Status status = read_meta(kMetadataPath, &m_metadata_directory); !status.ok()) {
    return Status::failed(
        fmt::format("log and tree of {} lie on another file system, and {}, which says where, cannot "
                    "be read ({}): write it anew, one line, the path of the directory that has them",
                    m_path, file(kMetadataPath), status.message()));
  }
  std::string owner, fsid;
  VTKV_RETURN_IF_ERROR(own_fsid(&fsid));
  const Status found = StoreDirectory(m_env, m_metadata_directory).read_meta(kOwner, &owner);
  if (found.ok() && owner == fsid) {
    return {};
  }
  return Status::failed(fmt::format(
      "log and tree of {0} should lie in {1}, and that is not the one: {2}. Mount its file system; if it is mounted "
      "elsewhere, correct the line in {3}; if they are there, and its file fsid alone is lost, write {4} into it. "
      "Nothing was changed",
      m_path, m_metadata_directory,
      found.ok() ? fmt::format("its file fsid says {}, this store is {}", owner, fsid) : found.message(),
      file(kMetadataPath), fsid));
}

// ---- a move

// Names in the directory of a cube's log and tree that are theirs.
Status StoreDirectory::list_database(const std::string& metadata_directory, unsigned cube,
                                     std::vector<std::string>* names) {
  const Status listed = m_env->list_directory(database_path_in(metadata_directory, cube), names);
  std::erase_if(*names, [](const std::string& name) { return name == kContainers || name == kPartOf; });
  return listed;
}

Status StoreDirectory::mark_database(const std::string& metadata_directory, unsigned cube) {
  if (metadata_directory.empty()) {
    return {};
  }
  StoreDirectory beside(m_env, database_path_in(metadata_directory, cube));
  if (!m_env->exists(beside.m_path) || m_env->exists(beside.file(kPartOf))) {
    return {};
  }
  std::string fsid;
  VTKV_RETURN_IF_ERROR(own_fsid(&fsid));
  VTKV_RETURN_IF_ERROR(beside.write_file(kPartOf, fmt::format("cube {} of the SwimStore {}\n", cube, fsid)));
  return m_env->sync_directory(beside.m_path);
}

Status StoreDirectory::mark_databases(unsigned cubes) {
  for (unsigned cube = 0; cube < cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(mark_database(m_metadata_directory, cube));
  }
  return {};
}

// The directory that is not used keeps its `fsid` until the mark is gone. So while there is a mark, a directory without
// our `fsid` is one that is not mounted.
Status StoreDirectory::begin_metadata_move(const MetadataMove& move, unsigned cubes,
                                           std::unique_ptr<vtkv::FileLock>* lock) {
  for (std::string above = move.to; above.find('/', 1) != std::string::npos;) {
    above.resize(above.rfind('/'));
    if (owns(above)) {  // by whatever path
      return Status::invalid_argument(
          fmt::format("log and tree lie in {}: name a directory outside of it, not {}", above, move.to));
    }
  }
  if (!move.to.empty()) {
    VTKV_RETURN_IF_ERROR(prepare_metadata_directory(move.to, /*may_hold_ours=*/false, lock));
    VTKV_RETURN_IF_ERROR(claim_metadata_directory(move.to));
  }
  for (unsigned cube = 0; move.to.empty() && cube < cubes; ++cube) {
    std::vector<std::string> names;
    std::string found;
    VTKV_RETURN_IF_ERROR(list_database(move.to, cube, &names));
    for (const std::string& name : names) {
      VTKV_RETURN_IF_ERROR(found.empty() ? find_file(cube_path(cube) + "/" + name, &found) : Status());
    }
    if (!found.empty()) {
      return Status::failed(
          fmt::format("{} is there, and log and tree lie elsewhere: it is not of this store, or an old "
                      "copy. Nothing was changed: look at it, and move it away",
                      found));
    }
  }
  return write_meta(kMoving, name_of(move.from) + kBetween + name_of(move.to));
}

Status StoreDirectory::read_metadata_move(std::optional<MetadataMove>* move) {
  move->reset();
  std::string text;
  const Status status = read_meta(kMoving, &text);
  if (status.is_not_found()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  const size_t between = text.find(kBetween);
  if (between == std::string::npos) {
    return Status::failed(fmt::format(
        "{} does not name two places, and should: a move of log and tree was "
        "interrupted. {}. Empty the place that they do not lie in, and remove the file",
        file(kMoving), m_metadata_directory.empty() ? "They lie in the cubes" : "They lie in " + m_metadata_directory));
  }
  move->emplace(place_of(text.substr(0, between)), place_of(text.substr(between + 1)));
  return {};
}

// Calls file(its path below that of the cube's database) for each, and before those of a folder folder(the same of it).
Status StoreDirectory::walk_database(const std::string& metadata_directory, unsigned cube, const Visitor& folder,
                                     const Visitor& file) {
  const std::string root = database_path_in(metadata_directory, cube);
  const std::function<Status(const std::string&)> walk = [&](const std::string& name) {
    std::vector<std::string> names;
    const Status listed = m_env->list_directory(root + "/" + name, &names);
    if (listed.error_number() == ENOTDIR) {
      return file(name);
    }
    VTKV_RETURN_IF_ERROR(listed);
    VTKV_RETURN_IF_ERROR(folder(name));
    for (const std::string& one : names) {
      VTKV_RETURN_IF_ERROR(walk(name + "/" + one));
    }
    return Status();
  };
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(list_database(metadata_directory, cube, &names));
  for (const std::string& name : names) {
    VTKV_RETURN_IF_ERROR(walk(name));
  }
  return {};
}

Status StoreDirectory::measure_metadata(const std::string& metadata_directory, unsigned cubes, uint64_t* bytes) {
  *bytes = 0;
  for (unsigned cube = 0; cube < cubes; ++cube) {
    const std::string root = database_path_in(metadata_directory, cube);
    const auto add = [&](const std::string& name) {
      std::unique_ptr<vtkv::File> file;
      uint64_t file_bytes = 0;
      std::vector<vtkv::FileRange> ranges;
      VTKV_RETURN_IF_ERROR(m_env->open_file(root + "/" + name, {.read_only = true, .direct = false}, &file));
      VTKV_RETURN_IF_ERROR(find_data(*file, &ranges, &file_bytes));
      for (const vtkv::FileRange& range : ranges) {
        *bytes += range.length;
      }
      return Status();
    };
    const auto pass_over = [](const std::string&) { return Status(); };
    VTKV_RETURN_IF_ERROR(walk_database(metadata_directory, cube, pass_over, add));
  }
  return {};
}

Status StoreDirectory::copy_metadata(const MetadataMove& move, unsigned cubes, uint64_t* bytes) {
  *bytes = 0;
  for (unsigned cube = 0; cube < cubes; ++cube) {
    const std::string from = database_path_in(move.from, cube), to = database_path_in(move.to, cube);
    std::vector<std::string> folders{to};
    VTKV_RETURN_IF_ERROR(m_env->create_directory(to));
    const auto make = [&](const std::string& name) {
      folders.push_back(to + "/" + name);
      return m_env->create_directory(folders.back());
    };
    const auto copy = [&](const std::string& name) {
      return copy_file(m_env, from + "/" + name, to + "/" + name, bytes);
    };
    VTKV_RETURN_IF_ERROR(walk_database(move.from, cube, make, copy));
    VTKV_RETURN_IF_ERROR(mark_database(move.to, cube));
    for (const std::string& folder : folders) {
      VTKV_RETURN_IF_ERROR(m_env->sync_directory(folder));
    }
  }
  return m_env->sync_directory(move.to.empty() ? cubes_path() : move.to);
}

bool StoreDirectory::has_metadata_move() { return m_env->exists(file(kMoving)); }

// Of a store that lies in its cubes there is none: it would name a place that is of no use any more.
Status StoreDirectory::renew_metadata_path() {
  if (!m_metadata_directory.empty()) {
    return write_meta(kMetadataPath, m_metadata_directory);
  }
  VTKV_RETURN_IF_ERROR(remove_mark(kMetadataPath));
  return m_env->sync_directory(m_path);
}

Status StoreDirectory::use_moved_metadata(const MetadataMove& move) {
  VTKV_RETURN_IF_ERROR(move.to.empty() ? Status() : write_meta(kMetadataPath, move.to));
  m_metadata_directory = move.to;
  return {};
}

Status StoreDirectory::remove_database(const std::string& metadata_directory, unsigned cube) {
  const std::string path = database_path_in(metadata_directory, cube);
  std::vector<std::string> names;
  const Status listed = list_database(metadata_directory, cube, &names);
  if (listed.is_not_found()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(listed);
  for (const std::string& name : names) {
    VTKV_RETURN_IF_ERROR(remove_name(path + "/" + name));
  }
  if (const std::string mark = path + "/" + kPartOf; m_env->exists(mark)) {
    VTKV_RETURN_IF_ERROR(m_env->remove_file(mark));
  }
  return m_env->sync_directory(path);
}

Status StoreDirectory::end_metadata_move(const std::string& unused, unsigned cubes) {
  const auto find = [&] {
    return unused.empty() || owns(unused)
               ? Status()
               : Status::failed(
                     fmt::format("log and tree of {} lie in {}, and an interrupted move has left files in {}, which "
                                 "is not there: mount its file system. If it is gone for good, remove {}",
                                 m_path, m_metadata_directory.empty() ? cubes_path() : m_metadata_directory, unused,
                                 file(kMoving)));
  };
  // Nobody else takes the directory before the last of our files is gone.
  std::unique_ptr<vtkv::FileLock> lock;
  VTKV_RETURN_IF_ERROR(find());
  VTKV_RETURN_IF_ERROR(unused.empty() ? Status() : m_env->lock_file(unused + "/" + kLock, &lock));
  VTKV_RETURN_IF_ERROR(find());
  for (unsigned cube = 0; cube < cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(remove_database(unused, cube));
  }
  VTKV_RETURN_IF_ERROR(m_metadata_directory.empty() ? remove_mark(kMetadataPath) : Status());
  if (unused.empty()) {
    return remove_mark(kMoving);
  }
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(m_env->list_directory(unused, &names));
  for (const std::string& name : names) {
    const bool goes = is_small_file(name) && name != kOwner && name != kLock;
    VTKV_RETURN_IF_ERROR(goes ? m_env->remove_file(unused + "/" + name) : Status());
  }
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(unused));
  VTKV_RETURN_IF_ERROR(remove_mark(kMoving));
  // By itself it keeps nobody from the directory, so nothing is left to do where this fails. The lock stays: who waits
  // for it has that very file open.
  (void)m_env->remove_file(unused + "/" + kOwner);
  (void)m_env->sync_directory(unused);
  return {};
}

}  // namespace swimstore
