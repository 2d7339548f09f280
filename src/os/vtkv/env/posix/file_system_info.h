// SPDX-License-Identifier: LGPL-2.1-or-later
// What a path's file system and the device below it are, as far as the host tells.
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "vtkv/env.h"

namespace vtkv {

// The path must exist. Fails only when the file system cannot be asked; a device that cannot be found
// out stays empty.
Status read_file_system_info(const std::string& path, FileSystemInfo* info);

// Its two halves. What costs next to nothing to ask: kind, space, read_only; the rest of *info is emptied. *device: as
// stat(2) has it.
Status read_file_system_space(const std::string& path, FileSystemInfo* info, uint64_t* device);
// The same of an open file; `path` names it in an error.
Status read_file_system_space(int descriptor, const std::string& path, FileSystemInfo* info, uint64_t* device);
// And what has to be looked for in /proc and /sys. REQUIRES: info->kind is set.
void describe_file_system(const std::string& path, uint64_t device, FileSystemInfo* info);

// The kernel's name of a block device, such as "sda1". `device`: as stat(2) has it of what lies on it. Empty when it
// cannot be told.
std::string block_device_name(uint64_t device);
// What the kernel shows of the ext4 there, in /proc/fs/ext4/NAME/`file`; empty where it does not. `options`: one in a
// line; what is kept in the file system itself shows only there.
std::string read_ext4_file(uint64_t device, const std::string& file);

// Which mount a path lies on, as /proc/self/mountinfo tells it.
struct Mount {
  std::string point;
  std::string type;     // "ext4", "overlay"
  std::string source;
  std::string options;  // of the file system: "rw,data=journal"
};
// `path` is absolute, without links. The longest mount point above it; of several at the same place the last is the one
// on top.
Mount find_mount(std::istream& mountinfo, const std::string& path);

// Is it one of these, which are separated by commas or by lines?
bool has_option(const std::string& options, std::string_view option);
// Is one of them data=journal? Then data is written to the journal
// first, and to its place at any time after: a sync of one file does not cover the writes to another.
bool journals_data(const std::string& options);

}  // namespace vtkv
