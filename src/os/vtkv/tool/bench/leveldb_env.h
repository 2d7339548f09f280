// SPDX-License-Identifier: LGPL-2.1-or-later
// LevelDB's host, with RocksDB's "direct reads": tables are read with O_DIRECT, so that LevelDB keeps to the
// memory budget instead of to the page cache, and written files reach the device as they grow.
#pragma once

#include <leveldb/env.h>

namespace vtkv::bench {

// Never destroyed.
leveldb::Env* direct_leveldb_env();

}  // namespace vtkv::bench
