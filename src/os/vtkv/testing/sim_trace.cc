// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/sim_trace.h"

namespace vtkv {

namespace {

// The directory is that path's, or lies above it.
bool is_above(const std::string& directory, const std::string& path) {
  return directory == "/" || path.compare(0, directory.size() + 1, directory + "/") == 0;
}

bool is_data(const SimOp& op) { return op.kind <= SimOp::Kind::truncate; }

}  // namespace

bool is_on_other_file_system(const std::string& path) { return is_above(kSimOtherFileSystem, path + "/"); }

bool sim_covers(SimProfile profile, const SimSync& sync, const SimOp& op) {
  if (is_data(op)) {
    const bool one_flush_for_all = profile == SimProfile::ext4 || profile == SimProfile::xfs;
    return sync.inode != 0 &&
           (sync.inode == op.inode || (one_flush_for_all && op.primed && op.is_on_other == sync.is_on_other));
  }
  if (sync.inode != 0) {
    // sync.directory is where the file was when it was synced.
    const bool own_name = op.kind == SimOp::Kind::create && op.inode == sync.inode;
    const bool folder_above = op.kind == SimOp::Kind::create_directory && is_above(op.path, sync.directory + "/");
    return profile != SimProfile::weakest && (own_name || folder_above);
  }
  if (op.kind == SimOp::Kind::create_directory && profile != SimProfile::weakest &&
      is_above(op.path, sync.directory + "/")) {
    return true;
  }
  return sim_parent_of(op.path) == sync.directory;
}

void for_each_file(const SimTrace& trace, const std::function<void(const std::string& path, uint64_t inode)>& handle) {
  for (const auto& [path, inode] : trace.base.names) {
    handle(path, inode);
  }
  for (const SimOp& op : trace.ops) {
    if (op.kind == SimOp::Kind::create) {
      handle(op.path, op.inode);
    }
  }
}

void sim_apply(const SimOp& op, SimSpace space, SimImage* image) {
  if (op.kind <= SimOp::Kind::punch_hole && op.length == 0) {
    return;
  }
  switch (op.kind) {
    case SimOp::Kind::write:
      image->change(op.inode).write(op.data, space);
      break;
    case SimOp::Kind::zeros:
      image->change(op.inode).write_zeros(op.offset, op.length, space);
      break;
    case SimOp::Kind::allocate:
      image->change(op.inode).allocate(op.offset, op.length);
      break;
    case SimOp::Kind::punch_hole:
      image->change(op.inode).punch_hole(op.offset, op.length);
      break;
    case SimOp::Kind::truncate:
      image->change(op.inode).truncate(op.length);
      break;
    case SimOp::Kind::create:
      image->change(op.inode);
      image->names[op.path] = op.inode;
      break;
    case SimOp::Kind::create_directory:
      image->directories.insert(op.path);
      break;
    case SimOp::Kind::rename:
      // By file, not by name: an earlier operation on the same name may be missing.
      if (const auto old = image->names.find(op.from_path); old != image->names.end() && old->second == op.inode) {
        image->names.erase(old);
      }
      image->change(op.inode);
      image->names[op.path] = op.inode;
      break;
    case SimOp::Kind::remove:
      if (const auto old = image->names.find(op.path); old != image->names.end() && old->second == op.inode) {
        image->names.erase(old);
      }
      break;
  }
}

}  // namespace vtkv
