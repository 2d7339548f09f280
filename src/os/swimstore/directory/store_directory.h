// SPDX-License-Identifier: LGPL-2.1-or-later
// The directory a store lives in, seen from outside its cubes: whose it is, what it stands on, and the
// small files Ceph keeps there.
//
//   type, fsid, keyring, ready …   one line each, Ceph's
//   mkfs_unfinished                there while mkfs is at work: what lies below cubes/ is then its own
//   superblock                     format/superblock.h; written last by mkfs: without it there is no store
//   repair_unfinished              there while a repair is at work: until one has come to its end, nothing is served
//   add_cubes_unfinished           there while cubes are added: how many the store is about to have
//   lock                           held while mounted
//   spare                          one written block, so that a small file can be replaced on a full host
//   cubes/N/                       the cubes
//   cube_N_failed                  there while cube N is not to be used, or not before it was checked
#pragma once

#include <memory>
#include <optional>
#include <string>

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
  StoreDirectory(vtkv::Env* env, std::string path) : m_env(env), m_path(std::move(path)) {}

  const std::string& path() const { return m_path; }
  std::string cubes_path() const { return file("cubes"); }
  std::string cube_path(unsigned cube) const;
  bool has_superblock() const;

  // The directory exists, is not another store's, and its file system will do.
  vtkv::Status check_host(const Settings& settings, vtkv::FileSystemInfo* host);
  // Code::busy when another process has the store mounted. REQUIRES: check_host.
  vtkv::Status lock(std::unique_ptr<vtkv::FileLock>* lock);
  std::string lock_path() const { return file("lock"); }
  // Code::not_found when no store was ever made here; corruption when one was, and this is what is missing of it.
  vtkv::Status read_superblock(Superblock* superblock);

  // Removes what an interrupted mkfs left, and what no mkfs left is refused. From here on an interrupted mkfs can be
  // told. REQUIRES: locked, no superblock.
  vtkv::Status begin_mkfs();
  // Whatever is missing from now on, it was not mkfs that left it out. REQUIRES: locked, a superblock.
  vtkv::Status end_mkfs();

  // From begin to end, durably, a repair is unfinished. REQUIRES: locked.
  vtkv::Status begin_repair();
  vtkv::Status end_repair();
  bool is_repair_unfinished() const;

  // Durable, once it has returned. REQUIRES: locked; read_cube_mark does without.
  vtkv::Status mark_cube(unsigned cube, const CubeMark& mark);
  // No mark: *mark is empty.
  vtkv::Status read_cube_mark(unsigned cube, std::optional<CubeMark>* mark);
  vtkv::Status end_cube_mark(unsigned cube);
  std::string cube_mark_path(unsigned cube) const;  // for messages
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
  // What was renamed here becomes durable.
  vtkv::Status sync() { return m_env->sync_directory(m_path); }

  // Leaves its directories, without files. REQUIRES: locked.
  vtkv::Status empty_cube(unsigned cube);

  // A missing file is Code::not_found. Trailing white space is not part of the value.
  vtkv::Status read_meta(const std::string& key, std::string* value);
  // Replaces the file as a whole, durably; possible on a host without a free byte.
  vtkv::Status write_meta(const std::string& key, const std::string& value);

 private:
  std::string file(const std::string& name) const { return m_path + "/" + name; }
  vtkv::Status write_file(const std::string& name, const std::string& text);
  // Did a mkfs begin here that did not come to its end?
  vtkv::Status is_half_made(bool* half_made);
  // A file of a store; empty when there is none.
  vtkv::Status find_remains(std::string* path);
  vtkv::Status refuse_remains(const std::string& path) const;
  // Whatever it leads to.
  bool is_link(const std::string& path);
  vtkv::Status refuse_link(const std::string& path);
  vtkv::Status remove_mark(const std::string& name);
  vtkv::Status remove_below(const std::string& directory);
  // The path itself, or one below it, links too; empty when there are directories alone, or nothing.
  vtkv::Status find_file(const std::string& path, std::string* found);
  void keep_spare();

  vtkv::Env* m_env;
  std::string m_path;
};

}  // namespace swimstore
