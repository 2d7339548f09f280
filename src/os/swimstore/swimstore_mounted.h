// The parts of a mounted SwimStore, in the order they depend on each other. Of swimstore*.cc only.
#pragma once

#include "swimstore/commit/commit_pipeline.h"
#include "swimstore/format/superblock.h"
#include "swimstore/fsck/online_fsck.h"
#include "swimstore/ops/admin_commands.h"
#include "swimstore/ops/memory_manager.h"
#include "swimstore/ops/online_verify.h"
#include "swimstore/ops/pool_options.h"
#include "swimstore/store/collection_list.h"
#include "swimstore/store/object_reader.h"
#include "swimstore/store/omap_reader.h"
#include "swimstore/swimstore.h"

struct SwimStore::Mounted {
  Mounted(CephContext* cct, vtkv::Env* env, std::unique_ptr<vtkv::FileLock> lock,
          std::unique_ptr<swimstore::Cube> cube, Finisher& finisher, PerfCounters& counters,
          swimstore::MetadataFailure metadata_failure);

  std::unique_ptr<vtkv::FileLock> lock;
  swimstore::Superblock superblock;
  bool single_flush = false;
  bool read_only = false;  // it has features that this program does not know, and is only looked at
  std::unique_ptr<swimstore::Cube> cube;
  swimstore::StoreContext context;
  swimstore::ObjectReader objects;
  swimstore::OmapReader omaps;
  swimstore::CollectionLister lister;
  swimstore::CommitPipeline pipeline;
  swimstore::MemoryManager memory;
  swimstore::AdminCommands commands;
  swimstore::OnlineFsck fsck;
  swimstore::OnlineVerify verify;
  swimstore::IgnoredPoolOptions ignored_options;
};
