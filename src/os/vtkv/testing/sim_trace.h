// SPDX-License-Identifier: LGPL-2.1-or-later
// The record of what a SimEnv did to its disk: enough to say, for every moment, what a crash at that
// moment could have left.
//
// Time is a counter of events. An operation is in doubt from its submission until a sync that covers it
// has completed. It counts as completed, for the question what a sync covers, only once the program
// could know: a synchronous call when it returned, a queued request when it was reaped.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "vtkv/testing/sim_image.h"

namespace vtkv {

inline constexpr uint64_t kSimNever = std::numeric_limits<uint64_t>::max();

// What a sync makes durable.
//   ext4, xfs: its file and name, and everything completed in primed space of any file
//   btrfs:     its file and name
//   weakest:   its file's bytes and size; names only by a sync of their directory
enum class SimProfile { ext4, xfs, btrfs, weakest };

// What lies below is on a second file system, of the same kind on another device: no sync here covers anything there.
inline constexpr const char* kSimOtherFileSystem = "/other";
bool is_on_other_file_system(const std::string& path);

struct SimOp {
  enum class Kind : uint8_t { write, zeros, allocate, punch_hole, truncate, create, create_directory, rename, remove };
  Kind kind = Kind::write;
  bool primed = false;   // it changes no metadata
  bool spoiled = false;  // a sync that would have covered it failed: no later one does
  bool is_on_other = false;  // file system: of a file's data
  uint64_t inode = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  SimData data;           // write
  std::string path;       // create, create_directory, remove; the new name of rename
  std::string from_path;  // rename
  uint64_t submitted = 0;
  uint64_t executed = kSimNever;
  uint64_t completed = kSimNever;
};

struct SimSync {
  uint64_t inode = 0;     // 0: of a directory
  std::string directory;
  bool is_on_other = false;  // file system
  uint64_t submitted = 0;
  uint64_t completed = kSimNever;  // also of one that failed
};

// What the test saw at that time, for example that a transaction was acknowledged.
struct SimMark {
  uint64_t time = 0;
  uint64_t id = 0;
  std::string text;
};

struct SimTrace {
  SimProfile profile = SimProfile::ext4;
  uint64_t capacity_bytes = 0;
  SimImage base;  // all of it durable
  uint64_t next_inode = 1;
  uint64_t end = 0;
  std::vector<SimOp> ops;
  std::vector<SimSync> syncs;
  std::vector<SimMark> marks;
};

// Whether a sync of one file or directory makes the operation durable, times aside.
bool sim_covers(SimProfile profile, const SimSync& sync, const SimOp& op);

// Calls with path and inode of every file that was there or was created, under its first name.
void for_each_file(const SimTrace& trace, const std::function<void(const std::string& path, uint64_t inode)>& handle);

// Performs the operation. Space that it writes becomes `space` unless it is primed already.
void sim_apply(const SimOp& op, SimSpace space, SimImage* image);

}  // namespace vtkv
