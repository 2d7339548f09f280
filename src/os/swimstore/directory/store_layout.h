// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the files of a store lie, and what a flush covers there.
#pragma once

#include <string>

namespace swimstore {

struct StoreLayout {
  std::string metadata_directory;  // of log and tree, on another file system; empty: in the cubes
  bool single_flush = false;       // one sync of any file covers all that is primed on its file system
};

// Of log and tree: from which metadata directory to which; empty: the cubes.
struct MetadataMove {
  std::string from, to;
};

}  // namespace swimstore
