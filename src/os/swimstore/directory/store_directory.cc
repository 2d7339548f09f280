// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/directory/store_directory.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <boost/algorithm/string.hpp>

#include "swimstore/container/space_reserve.h"
#include "vtkv/util/mutex.h"

namespace swimstore {

using vtkv::Status;

namespace {

constexpr uint64_t kMetaBytesMax = 4096;
constexpr const char* kSuperblock = "superblock";
constexpr const char* kSpare = "spare";
constexpr uint64_t kSpareBytes = Superblock::kBytes;  // the largest file that is replaced
constexpr const char* kNewMeta = "meta.new";
constexpr const char* kUnfinished = "mkfs_unfinished";
constexpr const char* kRepairing = "repair_unfinished";
constexpr const char* kRepairLine = "repair of swimstore";
constexpr const char* kImporting = "import_unfinished";
constexpr const char* kAddingCubes = "add_cubes_unfinished";
constexpr const char* kUnfinishedText = "mkfs of swimstore";

// Threads of Ceph and the store's own write small files at any time, each by way of the same two names.
vtkv::Mutex replace_lock;

}  // namespace

std::string StoreDirectory::cube_path(unsigned cube) const { return fmt::format("{}/cubes/{}", m_path, cube); }

bool StoreDirectory::has_superblock() const { return m_env->exists(file(kSuperblock)); }

Status StoreDirectory::write_superblock(const Superblock& superblock) {
  return replace_file(kSuperblock, superblock.encode());
}

Status StoreDirectory::check_host(const Settings& settings, vtkv::FileSystemInfo* host) {
  std::vector<std::string> names;
  const Status listed = m_env->list_directory(m_path, &names);
  if (listed.is_not_found() || listed.error_number() == ENOTDIR) {
    return Status::make(Status::Code::not_found,
                        fmt::format("{} is not a directory: make it, or correct osd_data", m_path), ENOENT);
  }
  VTKV_RETURN_IF_ERROR(listed);
  std::string type;
  const Status typed = read_meta("type", &type);
  VTKV_RETURN_IF_ERROR(typed.is_not_found() ? Status() : typed);
  if (typed.ok() && type != "swimstore") {
    return Status::invalid_argument(
        fmt::format("{} belongs to a store of type '{}', not swimstore: set osd_objectstore to that, or use an "
                    "empty directory",
                    m_path, type));
  }
  return check_file_system(m_path, settings, host);
}

Status StoreDirectory::check_file_system(const std::string& path, const Settings& settings,
                                         vtkv::FileSystemInfo* host) {
  VTKV_RETURN_IF_ERROR(m_env->file_system_info(path, host));
  if (host->read_only) {
    return Status::make(Status::Code::io_error, fmt::format("the file system of {} is mounted read-only", path), EROFS);
  }
  if (host->kind == vtkv::FileSystemKind::other && !settings.allow_unproven_file_system) {
    return Status::unsupported(
        fmt::format("{} lies on a file system other than ext4, xfs and btrfs: move it, or set "
                    "swimstore_allow_unproven_file_system",
                    path));
  }
  return {};
}

Status StoreDirectory::lock(std::unique_ptr<vtkv::FileLock>* lock) {
  const Status status = m_env->lock_file(lock_path(), lock);
  if (status.code() == Status::Code::busy) {
    return Status::busy(fmt::format("{} is in use by another process: is its OSD running already?", m_path));
  }
  return status;
}

Status StoreDirectory::read_superblock(Superblock* superblock) {
  m_metadata_directory.clear();
  if (has_superblock()) {
    if (const Status read = Superblock::read(m_env, m_path, superblock); !read.ok()) {
      guess_metadata_directory();
      return read;
    }
    m_fsid = superblock->fsid().to_string();
    return superblock->features.incompat.contains(kMetadataElsewhereFeature) ? find_metadata_directory()
                                                                             : refuse_old_superblock();
  }
  guess_metadata_directory();
  bool half_made = false;
  VTKV_RETURN_IF_ERROR(is_half_made(&half_made));
  if (half_made) {
    return Status::not_found(fmt::format("a mkfs of {} did not come to its end: run it again, to make one", m_path));
  }
  std::string remains;
  VTKV_RETURN_IF_ERROR(find_remains(&remains));
  if (!remains.empty()) {
    return refuse_remains(remains);
  }
  return Status::not_found(
      fmt::format("{} holds no SwimStore, nor anything of one: mount the file system that does, "
                  "correct osd_data, or, for a new OSD, make one with ceph-volume swimstore create --data DEVICE",
                  m_path));
}

// ---- mkfs

// Ceph writes `ready` when it is done with mkfs: then nothing is half made.
Status StoreDirectory::is_half_made(bool* half_made) {
  std::string text;
  const Status status = read_meta(kUnfinished, &text);
  VTKV_RETURN_IF_ERROR(status.is_not_found() ? Status() : status);
  *half_made = status.ok() && text == kUnfinishedText && !m_env->exists(file("ready"));
  return {};
}

Status StoreDirectory::find_remains(std::string* path) {
  if (m_env->exists(file("ready"))) {
    *path = file("ready");
    return {};
  }
  const std::string cubes = file("cubes");
  std::vector<std::string> names;
  const Status listed = m_env->list_directory(cubes, &names);
  if (listed.is_not_found()) {
    *path = m_env->exists(cubes) ? cubes : "";
    return {};
  }
  VTKV_RETURN_IF_ERROR(listed);
  *path = names.empty() ? "" : cubes + "/" + names.front();
  return {};
}

Status StoreDirectory::refuse_remains(const std::string& path) const {
  return Status::corruption(
      fmt::format("there is no {}/superblock, but {} is there: a store was made here, or the folder is somebody "
                  "else's. Its data may be whole: do not run mkfs here. See that the whole of its file system is "
                  "mounted, and bring the file back from a copy that was made since cubes were last added, or log and "
                  "tree moved, if there is one. If there is none, make the OSD anew in another directory, let its "
                  "peers fill it, and keep this "
                  "one until all PGs are active+clean",
                  m_path, path));
}

Status StoreDirectory::begin_mkfs() {
  bool half_made = false;
  VTKV_RETURN_IF_ERROR(is_half_made(&half_made));
  if (!half_made) {
    std::string remains;
    VTKV_RETURN_IF_ERROR(find_remains(&remains));
    if (!remains.empty()) {
      return refuse_remains(remains);
    }
    VTKV_RETURN_IF_ERROR(write_meta(kUnfinished, kUnfinishedText));
  }
  const std::string cubes = file("cubes");
  if (!m_env->exists(cubes)) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(refuse_link(cubes));
  return remove_below(cubes);
}

// To open it tells: none is followed.
bool StoreDirectory::is_link(const std::string& path) {
  std::unique_ptr<vtkv::File> ignored;
  return m_env->open_file(path, {.read_only = true, .direct = false}, &ignored).error_number() == ELOOP;
}

Status StoreDirectory::refuse_link(const std::string& path) {
  return is_link(path) ? Status::invalid_argument(fmt::format(
                             "{} is a symbolic link, and what it leads to is left alone: remove the link", path))
                       : Status();
}

Status StoreDirectory::end_mkfs(const Superblock& superblock) {
  if (!m_env->exists(file(kUnfinished))) {
    return {};
  }
  const bool is_there = has_superblock();
  const Status written = write_superblock(superblock);
  VTKV_RETURN_IF_ERROR(is_there ? or_sync(written) : written);
  return remove_mark(kUnfinished);
}

Status StoreDirectory::remove_mark(const std::string& name) {
  if (!m_env->exists(file(name))) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(m_env->remove_file(file(name)));
  return m_env->sync_directory(m_path);
}

// To remove a link removes what is here, not what it leads to.
Status StoreDirectory::remove_below(const std::string& directory) {
  std::vector<std::string> names;
  VTKV_RETURN_IF_ERROR(m_env->list_directory(directory, &names));
  for (const std::string& name : names) {
    VTKV_RETURN_IF_ERROR(remove_name(directory + "/" + name));
  }
  return m_env->sync_directory(directory);
}

Status StoreDirectory::remove_name(const std::string& path) {
  const Status status = m_env->remove_file(path);
  return status.error_number() == EISDIR ? remove_below(path) : status;
}

// ---- repair and import

// A line, "repair of swimstore", and a number for each cube. None: one of an older program, which writes the line
// alone, or one that cannot be read; it may have been begun in any.
std::set<unsigned> StoreDirectory::read_repair() {
  std::string text;
  std::set<unsigned> cubes;
  if (!read_meta(kRepairing, &text).ok()) {
    return {};
  }
  std::vector<std::string> lines;
  boost::split(lines, text, boost::is_any_of("\n"));
  for (size_t i = 1; i < lines.size(); ++i) {
    unsigned cube = 0;
    if (std::from_chars(lines[i].data(), lines[i].data() + lines[i].size(), cube).ec == std::errc()) {
      cubes.insert(cube);
    }
  }
  return cubes;
}

Status StoreDirectory::note_repair(const std::set<unsigned>& cubes) {
  return write_meta(kRepairing, fmt::format("{}\n{}", kRepairLine, fmt::join(cubes, "\n")));
}

// A mark that is there is written anew, here and below: the sync behind its first write may have failed.
Status StoreDirectory::begin_repair(unsigned cube) {
  std::set<unsigned> cubes = read_repair();
  if (cubes.empty() && is_repair_unfinished()) {
    return m_env->sync_directory(m_path);  // of any cube, or not readable just now: it stays as it is
  }
  const bool is_new = cubes.insert(cube).second;
  const Status noted = note_repair(cubes);
  return is_new ? noted : or_sync(noted);
}

Status StoreDirectory::end_repair(const std::set<unsigned>& ended) {
  if (!is_repair_unfinished()) {
    return {};
  }
  const std::set<unsigned> begun = read_repair();
  std::set<unsigned> left = begun;
  if (begun.empty()) {
    Superblock superblock;
    VTKV_RETURN_IF_ERROR(read_superblock(&superblock));
    for (unsigned cube = 0; cube < superblock.cubes; ++cube) {
      left.insert(cube);
    }
  }
  std::erase_if(left, [&ended](unsigned cube) { return ended.contains(cube); });
  if (left.empty()) {
    return remove_mark(kRepairing);
  }
  return begun.empty() || left == begun ? Status() : note_repair(left);
}

bool StoreDirectory::is_repair_unfinished() const { return m_env->exists(file(kRepairing)); }

Status StoreDirectory::begin_import(const std::string& archive, bool* again) {
  std::vector<std::string> archives;
  VTKV_RETURN_IF_ERROR(read_imports(&archives));
  *again = std::find(archives.begin(), archives.end(), archive) != archives.end();
  if (*again) {
    return or_sync(note_imports(archives));
  }
  if (!fits_a_line(archive)) {
    return Status::invalid_argument(
        fmt::format("'{}' has an end or a character that a line cannot hold: rename the "
                    "archive, or its folder",
                    archive));
  }
  archives.push_back(archive);
  return note_imports(archives);
}

Status StoreDirectory::end_import(const std::string& archive) {
  std::vector<std::string> archives;
  VTKV_RETURN_IF_ERROR(read_imports(&archives));
  return std::erase(archives, archive) > 0 ? note_imports(archives) : Status();
}

Status StoreDirectory::note_imports(const std::vector<std::string>& archives) {
  return archives.empty() ? remove_mark(kImporting)
                          : write_meta(kImporting, fmt::format("{}", fmt::join(archives, "\n")));
}

Status StoreDirectory::forget_repair_and_import() {
  VTKV_RETURN_IF_ERROR(remove_mark(kRepairing));
  return remove_mark(kImporting);
}

Status StoreDirectory::read_imports(std::vector<std::string>* archives) {
  std::string text;
  const Status status = read_meta(kImporting, &text);
  VTKV_RETURN_IF_ERROR(status.is_not_found() ? Status() : status);
  boost::split(*archives, text, boost::is_any_of("\n"));
  std::erase(*archives, "");
  return {};
}

std::vector<std::string> StoreDirectory::unfinished_imports() {
  std::vector<std::string> archives;
  return read_imports(&archives).ok() ? archives : std::vector<std::string>{"an archive"};
}

// ---- cubes

namespace {

constexpr std::string_view kSuspect = "suspect: ";
constexpr std::string_view kAbandoned = "abandoned: ";

std::string cube_mark_name(unsigned cube) { return fmt::format("cube_{}_failed", cube); }

}  // namespace

Status StoreDirectory::mark_cube(unsigned cube, const CubeMark& mark) {
  std::string text = fmt::format("{}{}", mark.state == CubeMark::State::abandoned ? kAbandoned : kSuspect, mark.reason);
  text.resize(std::min<size_t>(text.size(), kMetaBytesMax - 1));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return write_meta(cube_mark_name(cube), text);
}

// What an abandoned cube has is old: where it is not sure that one is not, nothing is served.
Status StoreDirectory::read_cube_mark(unsigned cube, std::optional<CubeMark>* mark) {
  std::string text;
  const Status status = read_meta(cube_mark_name(cube), &text);
  mark->reset();
  if (status.is_not_found()) {
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  const bool is_abandoned = text.starts_with(kAbandoned);
  if (!is_abandoned && !text.starts_with(kSuspect)) {
    return Status::corruption(
        fmt::format("{} says neither 'suspect: ' nor 'abandoned: ', and why. Write the line anew: 'abandoned: ' if the "
                    "OSD has gone on without the cube, or if that is not known, since what it has may be old then; "
                    "'suspect: ' if it surely has not",
                    file(cube_mark_name(cube))));
  }
  mark->emplace(is_abandoned ? CubeMark::State::abandoned : CubeMark::State::suspect,
                text.substr((is_abandoned ? kAbandoned : kSuspect).size()));
  return {};
}

std::string StoreDirectory::cube_mark_path(unsigned cube) const { return file(cube_mark_name(cube)); }

Status StoreDirectory::end_cube_mark(unsigned cube) { return remove_mark(cube_mark_name(cube)); }

// ---- more cubes

std::string StoreDirectory::added_cubes_path() const { return file(kAddingCubes); }

Status StoreDirectory::read_added_cubes(std::optional<unsigned>* cubes) {
  cubes->reset();
  std::string text;
  const Status status = read_meta(kAddingCubes, &text);
  if (status.is_not_found() || status.is_corruption()) {
    *cubes = status.is_not_found() ? std::nullopt : std::optional(0u);
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  *cubes = error == std::errc() && end == text.data() + text.size() ? number : 0;
  return {};
}

Status StoreDirectory::claim_new_cubes(unsigned first, unsigned cubes) {
  for (unsigned cube = first; cube < cubes; ++cube) {
    std::string found;
    VTKV_RETURN_IF_ERROR(find_file(cube_path(cube), &found));
    VTKV_RETURN_IF_ERROR(found.empty() ? find_file(database_path(cube), &found) : Status());
    if (!found.empty()) {
      return Status::failed(
          fmt::format("{} is there, and the store has {} cubes: it is not of this store, unless the superblock is an "
                      "old copy. Nothing was changed: look at it, and move it away",
                      found, first));
    }
  }
  return write_meta(kAddingCubes, fmt::format("{}", cubes));
}

Status StoreDirectory::empty_new_cubes(unsigned first, unsigned cubes) {
  for (unsigned cube = first; cube < cubes; ++cube) {
    VTKV_RETURN_IF_ERROR(empty_cube(cube));
  }
  return {};
}

Status StoreDirectory::end_adding_cubes() { return remove_mark(kAddingCubes); }

Status StoreDirectory::find_file(const std::string& path, std::string* found) {
  std::vector<std::string> names;
  const Status listed = m_env->list_directory(path, &names);
  if (listed.error_number() == ENOTDIR || is_link(path)) {
    *found = path;
    return {};
  }
  if (!listed.ok()) {
    return listed.is_not_found() ? Status() : listed;
  }
  for (const std::string& name : names) {
    if (found->empty()) {
      VTKV_RETURN_IF_ERROR(find_file(path + "/" + name, found));
    }
  }
  return {};
}

Status StoreDirectory::empty_cube(unsigned cube) {
  VTKV_RETURN_IF_ERROR(refuse_link(cube_path(cube)));
  VTKV_RETURN_IF_ERROR(refuse_link(database_path(cube)));
  const auto empty = [this](const std::string& path) { return m_env->exists(path) ? remove_below(path) : Status(); };
  VTKV_RETURN_IF_ERROR(empty(cube_path(cube)));
  return m_metadata_directory.empty() ? Status() : empty(database_path(cube));
}

// ---- small files

Status StoreDirectory::read_meta(const std::string& key, std::string* value) {
  if (!m_env->exists(file(key))) {
    return Status::not_found(fmt::format("there is no file {}", file(key)));
  }
  std::unique_ptr<vtkv::File> in;
  VTKV_RETURN_IF_ERROR(m_env->open_file(file(key), {.read_only = true, .direct = false}, &in));
  uint64_t bytes = 0;
  VTKV_RETURN_IF_ERROR(in->size(&bytes));
  if (bytes > kMetaBytesMax) {
    return Status::corruption(fmt::format("{} has {} bytes: it should hold one line", file(key), bytes));
  }
  std::string text(bytes, '\0');
  if (bytes > 0) {
    VTKV_RETURN_IF_ERROR(in->read(0, bytes, text.data()));
  }
  text.erase(text.find_last_not_of(std::string_view(" \t\r\n\0", 5)) + 1);
  *value = std::move(text);
  return {};
}

// The size is set last and only downwards: on a full host nothing here needs a new block.
Status StoreDirectory::write_file(const std::string& name, const std::string& text) {
  std::unique_ptr<vtkv::File> out;
  VTKV_RETURN_IF_ERROR(m_env->open_file(file(name), {.create = true, .direct = false}, &out));
  VTKV_RETURN_IF_ERROR(out->write(0, text.data(), text.size()));
  VTKV_RETURN_IF_ERROR(out->truncate(text.size()));
  return out->sync();
}

bool StoreDirectory::fits_a_line(const std::string& text) {
  return !text.ends_with(' ') && std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; });
}

bool StoreDirectory::is_small_file(const std::string& name) {
  return name == kOwner || name == kLock || name == kSpare || name == kNewMeta || name == SpaceReserve::kFileName;
}

void StoreDirectory::keep_spare() {
  std::unique_ptr<vtkv::File> spare;
  uint64_t bytes = 0;  // an older program's is smaller
  if (m_env->open_file(file(kSpare), {.read_only = true, .direct = false}, &spare).ok()) {
    (void)spare->size(&bytes);
  }
  for (const uint64_t wanted : {kSpareBytes, kMetaBytesMax}) {
    if (bytes < wanted && write_file(kSpare, std::string(wanted, '\0')).ok()) {
      return;
    }
  }
  // The host is full just now; the next write tries again. A smaller one serves all but the superblock.
  if (bytes == 0) {
    (void)m_env->remove_file(file(kSpare));
  }
}

Status StoreDirectory::write_meta(const std::string& key, const std::string& value) {
  if (value.size() >= kMetaBytesMax) {
    return Status::invalid_argument(fmt::format("{} bytes are too many for the file {}", value.size(), file(key)));
  }
  return replace_file(key, value + "\n");
}

Status StoreDirectory::replace_file(const std::string& name, const std::string& text) {
  vtkv::MutexLock lock(replace_lock);
  Status status = write_file(kNewMeta, text);
  const char* written = kNewMeta;
  if (status.is_no_space() && m_env->exists(file(kSpare))) {
    (void)m_env->remove_file(file(kNewMeta));
    written = kSpare;
    status = write_file(kSpare, text);
  }
  VTKV_RETURN_IF_ERROR(status);
  VTKV_RETURN_IF_ERROR(m_env->rename_file(file(written), file(name)));
  VTKV_RETURN_IF_ERROR(m_env->sync_directory(m_path));
  keep_spare();
  return {};
}

}  // namespace swimstore
