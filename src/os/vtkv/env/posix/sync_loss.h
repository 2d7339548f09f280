// SPDX-License-Identifier: LGPL-2.1-or-later
// Why a loss of power may take back what was synced: a file system that keeps no such promise, or a device whose cache
// the kernel was told not to flush. Fast commits, which have to be tried out, are in fast_commit.h.
#pragma once

#include <string>

namespace vtkv {

// The reason and the remedy, as the end of a sentence ("/osd lies on …"); empty: none is known. The path must exist.
std::string find_sync_loss(const std::string& path);
// The same of the devices below the path, as a sentence. A disk that keeps its cache without power loses nothing: only
// its owner knows.
std::string find_unflushed_cache(const std::string& path);

// A file system, as the host describes it.
struct SyncFacts {
  bool has_magic_of_ext4 = false;  // ext2 and ext3 have it, too
  std::string type;                // as /proc/self/mountinfo has it
  std::string mount_point;
  std::string options;       // of the mount, and of ext4 those in /proc/fs/ext4
  std::string journal_task;  // of ext4, the file of that name in /sys/fs/ext4
  std::string device;        // "sda1"
};
std::string describe_sync_loss(const SyncFacts& facts);

// A block device, as files of /sys/block describe it.
struct CacheFacts {
  std::string write_cache;  // queue/write_cache: does the kernel flush it?
  std::string fua;          // queue/fua: the kernel keeps it at 1 only for a device with a volatile cache
  std::string cache_type;   // what the driver of a SCSI or virtio disk says of it
  bool is_loop = false;     // in use over a file, whose cache is that of the host
};
// Is it volatile, and not flushed? False where that cannot be told: so it is of a SCSI disk whose driver was told, too.
bool is_unflushed(const CacheFacts& facts);

}  // namespace vtkv
