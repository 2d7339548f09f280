// SPDX-License-Identifier: LGPL-2.1-or-later
// The directory a store lives in, seen from outside its cubes: whose it is, what it stands on, and the
// small files Ceph keeps there.
//
//   type, fsid, keyring, ready …   one line each, Ceph's
//   mkfs_unfinished                there while mkfs is at work: what lies below cubes/ is then its own
//   superblock                     format/superblock.h; written last by mkfs: without it there is no store
//   move_metadata_unfinished       there while log and tree move: from where to where
//   metadata_path                  where the superblock says so (kMetadataElsewhereFeature): the directory on another
//                                  file system that has log and tree of cube N in N, and in `fsid` whose they are
//   repair_unfinished              there while a repair is at work, with the cubes that it changes: until one has come
//                                  to its end in them, nothing is served
//   import_unfinished              there while objects are imported: until all are there, nothing is served
//   add_cubes_unfinished           there while cubes are added: how many the store is about to have
//   lock                           held while mounted
//   spare                          two written blocks, so that a small file can be replaced on a full host
//   cubes/N/                       the cubes
//   cube_N_failed                  there while cube N is not to be used, or not before it was checked
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "swimstore/directory/store_layout.h"
#include "swimstore/format/superblock.h"
#include "swimstore/ops/settings.h"
#include "vtkv/env.h"

namespace swimstore {

// What is known of a cube beside its own files.
struct CubeMark {
  enum class State {
    suspect,   // something of it could not be read: it is checked before it is used
    abandoned,  // the store goes on without it, its placement groups lie elsewhere: it is never opened again
  };
  State state = State::suspect;
  std::string reason;  // one line
};

class StoreDirectory {
 public:
  // Files of the store's directory, and of a directory that has log and tree.
  static constexpr const char* kOwner = "fsid";
  static constexpr const char* kMetadataPath = "metadata_path";  // says where log and tree lie, where not in the cubes
  static constexpr const char* kLock = "lock";

  StoreDirectory(vtkv::Env* env, std::string path) : m_env(env), m_path(std::move(path)) {}

  const std::string& path() const { return m_path; }
  std::string cubes_path() const { return file("cubes"); }
  std::string cube_path(unsigned cube) const;
  // Empty: log and tree lie in the cubes. Of a store that is there already, known from read_superblock() on.
  const std::string& metadata_directory() const { return m_metadata_directory; }
  // Is it a metadata directory of this store? Not where it cannot be read.
  bool owns(const std::string& metadata_directory);
  // For a salvage, which may know better than what a superblock says that cannot be read.
  void set_metadata_directory(const std::string& directory) { m_metadata_directory = directory; }
  // Of the log and the tree.
  std::string database_path(unsigned cube) const;
  bool has_superblock() const;

  // The directory exists, is not another store's, and its file system will do.
  vtkv::Status check_host(const Settings& settings, vtkv::FileSystemInfo* host);
  // The file system of one of its directories will do.
  vtkv::Status check_file_system(const std::string& path, const Settings& settings, vtkv::FileSystemInfo* host);
  // Code::busy when another process has the store mounted. REQUIRES: check_host.
  vtkv::Status lock(std::unique_ptr<vtkv::FileLock>* lock);
  std::string lock_path() const { return file(kLock); }
  // A regular file on each file system that the store lies on. REQUIRES: locked.
  std::vector<std::string> file_of_each_host() const;
  // Code::not_found when no store was ever made here; corruption when one was, and this is what is missing of it;
  // failed when its metadata directory is not there.
  vtkv::Status read_superblock(Superblock* superblock);
  // Whole and durable on return; possible on a host without a free byte.
  vtkv::Status write_superblock(const Superblock& superblock);
  // Of what is there and is written anew, in case the sync behind its first write failed: where there is no room for
  // that, a sync has to do. `written`: what became of it.
  vtkv::Status or_sync(const vtkv::Status& written) {
    return written.is_no_space() ? m_env->sync_directory(m_path) : written;
  }

  // Removes what an interrupted mkfs left, and what no mkfs left is refused. From here on an interrupted mkfs can be
  // told. REQUIRES: locked, no superblock.
  vtkv::Status begin_mkfs();
  // Log and tree shall lie in *directory, whose path is made a plain one: it is made where it is missing, and while the
  // lock is held nobody else takes it. What is in it is refused, unless an interrupted mkfs of this store left it.
  // REQUIRES: begin_mkfs, and the file fsid is there.
  vtkv::Status take_metadata_directory(std::string* directory, std::unique_ptr<vtkv::FileLock>* lock);
  // It becomes this store's, and empty. REQUIRES: taken.
  vtkv::Status make_metadata_directory(const std::string& directory);
  // What a store that was here before, or a mkfs that failed, has left of other places for log and tree.
  vtkv::Status forget_other_metadata();
  // The superblock is durable, whatever became of its first write, and what is missing from now on was not left out by
  // mkfs. REQUIRES: locked, a superblock, or begin_mkfs.
  vtkv::Status end_mkfs(const Superblock& superblock);

  // From begin to end, durably, a repair of the cube is unfinished. REQUIRES: locked.
  vtkv::Status begin_repair(unsigned cube);
  // One came to its end in these cubes. It stays unfinished where it was begun in another one.
  vtkv::Status end_repair(const std::set<unsigned>& cubes);
  bool is_repair_unfinished() const;
  // The same of the import of an archive, of each by itself. *again: one of it was cut short before.
  vtkv::Status begin_import(const std::string& archive, bool* again);
  vtkv::Status end_import(const std::string& archive);
  std::vector<std::string> unfinished_imports();  // their archives; of a file that cannot be read, no name
  bool is_unfinished() { return is_repair_unfinished() || !unfinished_imports().empty(); }
  // What a repair and an import of a store that was here before left.
  vtkv::Status forget_repair_and_import();

  // Durable, once it has returned. REQUIRES: locked; read_cube_mark does without.
  vtkv::Status mark_cube(unsigned cube, const CubeMark& mark);
  // No mark: *mark is empty.
  vtkv::Status read_cube_mark(unsigned cube, std::optional<CubeMark>* mark);
  vtkv::Status end_cube_mark(unsigned cube);
  std::string cube_mark_path(unsigned cube) const;  // for messages
  // A move of log and tree. While its mark is there, those in the directory that the store does not use may be removed.
  // *lock, to be held until the move has ended: nobody else takes move.to. Code::invalid_argument, or failed: something
  // else lies in move.to; busy: somebody else takes it. REQUIRES: locked, and there is no other move.
  vtkv::Status begin_metadata_move(const MetadataMove& move, unsigned cubes, std::unique_ptr<vtkv::FileLock>* lock);
  // Its mark is there, readable or not.
  bool has_metadata_move();
  // No move: *move is empty.
  vtkv::Status read_metadata_move(std::optional<MetadataMove>* move);
  // What says where log and tree lie is durable afterwards, whatever a crash or a failed sync made doubtful.
  vtkv::Status renew_metadata_path();
  // Without slashes at its end. Code::invalid_argument: it is no path from / on, goes through '..', has a character or
  // an end that no line of a small file holds, or lies in the store's directory.
  vtkv::Status normalize_metadata_path(std::string* path) const;
  // All of it is durable at move.to. REQUIRES: begun.
  vtkv::Status copy_metadata(const MetadataMove& move, unsigned cubes, uint64_t* bytes);
  // The store uses move.to from now on, as soon as the superblock, too, says that there is such a directory, or none.
  // REQUIRES: copied.
  vtkv::Status use_moved_metadata(const MetadataMove& move);
  // Removes log and tree from the directory that is not used, and ends the move. Code::failed: it is not mounted.
  vtkv::Status end_metadata_move(const std::string& unused, unsigned cubes);
  // Where log and tree lie elsewhere, each has a file beside it that is no database's: programs which know the engine
  // alone leave it as it is then, as they do where the containers are beside. Of a cube that is not there, none.
  // REQUIRES: locked.
  vtkv::Status mark_databases(unsigned cubes);
  // Bytes of log and tree there.
  vtkv::Status measure_metadata(const std::string& metadata_directory, unsigned cubes, uint64_t* bytes);
  // From claim to end, durably, the store is about to have so many cubes: what lies where those from `first` on will
  // lie is of this attempt. Code::failed: something is there already. REQUIRES: locked, there is no other attempt, and
  // `first` is what the superblock says.
  vtkv::Status claim_new_cubes(unsigned first, unsigned cubes);
  // Leaves their directories, without files, durably. REQUIRES: locked, and claimed.
  vtkv::Status empty_new_cubes(unsigned first, unsigned cubes);
  vtkv::Status end_adding_cubes();
  // Nothing: between no claim and end. 0: what says how many is damaged.
  vtkv::Status read_added_cubes(std::optional<unsigned>* cubes);
  // That file, for messages.
  std::string added_cubes_path() const;

  // Leaves its directories, without files. REQUIRES: locked.
  vtkv::Status empty_cube(unsigned cube);

  // A missing file is Code::not_found. Trailing white space is not part of the value.
  vtkv::Status read_meta(const std::string& key, std::string* value);
  // Replaces the file as a whole, durably; possible on a host without a free byte.
  vtkv::Status write_meta(const std::string& key, const std::string& value);

 private:
  std::string file(const std::string& name) const { return m_path + "/" + name; }
  vtkv::Status write_file(const std::string& name, const std::string& text);
  // Durably, as a whole; with the spare's blocks where the host has none.
  vtkv::Status replace_file(const std::string& name, const std::string& text);
  vtkv::Status read_imports(std::vector<std::string>* archives);
  // Did a mkfs begin here that did not come to its end?
  vtkv::Status is_half_made(bool* half_made);
  // A file of a store; empty when there is none.
  vtkv::Status find_remains(std::string* path);
  vtkv::Status refuse_remains(const std::string& path) const;
  // Whatever it leads to.
  bool is_link(const std::string& path);
  vtkv::Status refuse_link(const std::string& path);
  vtkv::Status note_imports(const std::vector<std::string>& archives);
  std::set<unsigned> read_repair();
  vtkv::Status note_repair(const std::set<unsigned>& cubes);
  // As a whole line of a small file that is not empty, so that it is read again as it was?
  static bool fits_a_line(const std::string& text);
  // store_directory_metadata.cc
  vtkv::Status own_fsid(std::string* fsid);
  vtkv::Status find_metadata_directory();
  void guess_metadata_directory();
  vtkv::Status refuse_old_superblock();
  static bool is_small_file(const std::string& name);  // that write_meta() leaves in a metadata directory
  vtkv::Status prepare_metadata_directory(const std::string& directory, bool may_hold_ours,
                                          std::unique_ptr<vtkv::FileLock>* lock);
  vtkv::Status refuse_what_is_in(const std::string& metadata_directory, bool may_hold_ours);
  vtkv::Status claim_metadata_directory(const std::string& directory);
  std::string database_path_in(const std::string& metadata_directory, unsigned cube) const;
  vtkv::Status list_database(const std::string& metadata_directory, unsigned cube, std::vector<std::string>* names);
  using Visitor = std::function<vtkv::Status(const std::string& name)>;
  vtkv::Status walk_database(const std::string& metadata_directory, unsigned cube, const Visitor& folder,
                             const Visitor& file);
  vtkv::Status remove_database(const std::string& metadata_directory, unsigned cube);
  vtkv::Status mark_database(const std::string& metadata_directory, unsigned cube);
  vtkv::Status remove_name(const std::string& path);
  vtkv::Status remove_mark(const std::string& name);
  vtkv::Status remove_below(const std::string& directory);
  // The path itself, or one below it, links too; empty when there are directories alone, or nothing.
  vtkv::Status find_file(const std::string& path, std::string* found);
  void keep_spare();

  vtkv::Env* m_env;
  std::string m_path;
  std::string m_metadata_directory;
  std::string m_fsid;  // of the superblock; empty: it was not read
};

}  // namespace swimstore
