// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether an ext4 has the feature fast_commit, with which Linux loses what was synced: of two files that two threads
// extend and sync, a crash takes back what both syncs had reported as durable, or leaves a file system that does not
// mount (seen with Linux 6.18; doc/crash_consistency.md).
#pragma once

#include <string>

#include "vtkv/status.h"

namespace vtkv {

// *found: does what lies in `directory`, which may be written to, depend on fast commits? Of another file system than
// ext4: no. Where the kernel does not show the feature, it shows what it did at a sync: a nameless file is synced for
// that.
Status find_fast_commit(const std::string& directory, bool* found);

// Its two parts, of the files in /proc/fs/ext4/DEVICE. Of `options`: is a line of it the one that stands for the
// feature (in kernels with CONFIG_EXT4_DEBUG)? Of `fc_info`: was a fast commit made, or put off?
bool shows_fast_commit(const std::string& options);
bool counts_fast_commits(const std::string& fc_info);

}  // namespace vtkv
