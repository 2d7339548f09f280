// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether an ext4 has the feature fast_commit, with which Linux loses what was synced: of two files that two threads
// extend and sync, a crash takes back what both syncs had reported as durable, or leaves a file system that does not
// mount (seen with Linux 6.18; doc/crash_consistency.md).
#pragma once

#include <string>

namespace vtkv {

// The block device ("sda1") of the file system that `file` lies on, if it has the feature; else, and where that cannot
// be told, "". Where the kernel does not show the feature, it counts fast commits: `file`, a regular one, gets its time
// changed and is synced for that, which takes no space.
std::string find_fast_commit(const std::string& file);

// How that is counted. REQUIRES: `file` lies on an ext4.
bool makes_fast_commits(const std::string& file);
// Of the files in /proc/fs/ext4/DEVICE. Of `options`: is a line of it the one that stands for the
// feature (in kernels with CONFIG_EXT4_DEBUG)? Of `fc_info`: was a fast commit made? What it calls ineligible says
// nothing: Linux 5.10 counts that without the feature, too.
bool shows_fast_commit(const std::string& options);
bool counts_fast_commits(const std::string& fc_info);

}  // namespace vtkv
