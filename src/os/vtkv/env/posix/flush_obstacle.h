// SPDX-License-Identifier: LGPL-2.1-or-later
// What in a directory keeps one flush from covering all of its files, although its file system is one where it does
// (FileSystemInfo::single_flush): a file somewhere else, or one whose blocks are written in another way.
#pragma once

#include <string>

#include "vtkv/status.h"

namespace vtkv {

// *obstacle: the first one found, as a sentence's end ("/osd/cubes/0/log/000001.log shares …"); empty: none. Looks at
// every file below the directory and asks the host for its extents: for once, when it is opened. What comes later
// (a snapshot of a file by reflink while it is in use) is not seen, nor what the process may not read, as root's copy
// of a keyring.
Status find_flush_obstacle(const std::string& directory, std::string* obstacle);

}  // namespace vtkv
