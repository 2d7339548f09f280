// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of a mounted SwimStore, in the order they depend on each other. Of swimstore*.cc only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "swimstore/admin/admin_commands.h"
#include "swimstore/admin/move_commands.h"
#include "swimstore/admin/online_defragment.h"
#include "swimstore/admin/online_fsck.h"
#include "swimstore/admin/online_verify.h"
#include "swimstore/directory/store_layout.h"
#include "swimstore/format/superblock.h"
#include "swimstore/move/online_mover.h"
#include "swimstore/object/collection_list.h"
#include "swimstore/object/object_reader.h"
#include "swimstore/omap/omap_reader.h"
#include "swimstore/ops/memory_manager.h"
#include "swimstore/ops/option_watch.h"
#include "swimstore/ops/pool_options.h"
#include "swimstore/swimstore.h"
#include "swimstore/transaction/transaction_pipeline.h"

struct SwimStore::Mounted {
  Mounted(CephContext* cct, vtkv::Env* env, std::unique_ptr<vtkv::FileLock> lock,
          std::unique_ptr<swimstore::CubeSet> cubes, swimstore::CallbackThreads& callbacks, PerfCounters& counters,
          swimstore::MetadataFailure metadata_failure, const swimstore::Superblock& superblock);

  std::unique_ptr<vtkv::FileLock> lock;
  const swimstore::Superblock superblock;
  swimstore::StoreLayout layout;
  swimstore::MissingCubes abandoned;  // before this mount
  bool read_only = false;  // it has features that this program does not know, and is only looked at
  std::unique_ptr<swimstore::CubeSet> cubes;
  swimstore::StoreContext context;
  swimstore::ObjectReader objects;
  swimstore::OmapReader omaps;
  swimstore::CollectionLister lister;
  swimstore::TransactionPipeline pipeline;
  swimstore::OnlineMover mover;
  swimstore::MemoryManager memory;
  swimstore::AdminCommands commands;
  swimstore::OnlineFsck fsck;
  swimstore::OnlineVerify verify;
  swimstore::MoveCommands move_commands;
  swimstore::OnlineDefragment defragment;
  swimstore::IgnoredPoolOptions ignored_options;
  std::vector<std::string> unknown_options;  // as sentences
  std::optional<swimstore::OptionWatch> fast_shutdown;
};
