// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/small_store.h"

#include <fmt/format.h>

#include "common/ceph_context.h"
#include "common/config.h"
#include "include/ceph_assert.h"

#include "swimstore/collection/collection.h"
#include "swimstore/format/superblock.h"
#include "swimstore/ops/settings.h"

namespace swimstore {

void use_small_stores(CephContext* cct, OptionValues others) {
  const auto set = [cct](OptionValues values) {
    for (const auto& [name, value] : values) {
      cct->_conf.set_val_or_die(name, value);
    }
  };
  set({{"swimstore_log_segment_size", "131072"},
       {"swimstore_log_segments", "2"},
       {"swimstore_zone_size", "65536"},
       {"swimstore_chunk_size", "4194304"},
       {"swimstore_memtable_size", "65536"},
       {"swimstore_compress_metadata", "true"},
       {"swimstore_primed_ahead_size", "65536"},
       {"swimstore_reserve_size", "1048576"},
       {"swimstore_cubes", "1"},
       {"swimstore_metadata_path", ""},
       {"swimstore_compression_mode", "none"},
       {"swimstore_compression_algorithm", "snappy"},
       {"swimstore_compression_required_ratio", "0.875"},
       {"swimstore_compression_min_blob_size", "65536"},
       {"swimstore_mount_damaged_cubes", "refuse"},
       {"swimstore_fsck_memory", "0"},
       {"swimstore_defragment_rate", "0"},
       {"swimstore_callback_threads", "0"},  // StepwiseCommits has a queue
       {"swimstore_cache_autotune", "false"},
       {"swimstore_cache_size", "8388608"},
       {"swimstore_allow_unproven_file_system", "true"},
       {"swimstore_space_throttle_time", "0"}});  // it sleeps, and on a small disk they are always nearly full
  set(others);
  cct->_conf.apply_changes(nullptr);
}

void make_smaller(CubeOptions* options) {
  options->database.geometry.log_segment_bytes = 64u << 10;
  options->database.geometry.initial_log_segments = 3;
  options->database.memtable_bytes = 16u << 10;
  options->containers.chunk_bytes = 32u << 10;
  options->containers.primed_class_max = 1;
  options->containers.primed_ahead_bytes = 32u << 10;
  options->containers.reserve_bytes = 512u << 10;
  options->containers.hole_bytes_min = 8u << 10;
}

std::unique_ptr<SwimStore> open_crash_store(CephContext* cct, vtkv::SimEnv* env) {
  auto store = std::make_unique<SwimStore>(cct, kCrashStore, env);
  store->set_fatal_handler([](const vtkv::Status& status) { ceph_abort_msg(status.to_string()); });
  return store;
}

std::string record_crash_store(CephContext* cct, vtkv::SimEnv* env, const std::function<void(SwimStore&)>& work) {
  if (!env->create_directory(kCrashStore).ok() || !env->create_directory(vtkv::kSimOtherFileSystem).ok() ||
      !env->sync_directory("/").ok()) {
    return "the directory cannot be made";
  }
  const auto store = open_crash_store(cct, env);
  if (const int r = store->mkfs(); r < 0) {
    return fmt::format("mkfs failed: {}", r);
  }
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  work(*store);
  const int r = store->umount();
  return r == 0 ? "" : fmt::format("umount failed: {}", r);
}

vtkv::Status open_cubes_of(CephContext* cct, vtkv::Env* env, const std::string& path, CubeSet::Opening opening,
                           std::unique_ptr<CubeSet>* cubes) {
  Settings settings;
  VTKV_RETURN_IF_ERROR(Settings::read(cct, &settings));
  Superblock superblock;
  VTKV_RETURN_IF_ERROR(Superblock::read(env, path, &superblock));
  settings.geometry = superblock.geometry;
  settings.chunk_bytes = superblock.chunk_bytes;
  opening.cubes = superblock.cubes;
  return CubeSet::open(env, path + "/cubes", settings.cube_options(true), opening, cubes);
}

unsigned home_of(SwimStore& store, const coll_t& cid) {
  const auto handle = store.open_collection(cid);
  const auto& collection = static_cast<const Collection&>(*handle);
  SharedLock lock(collection.lock);
  return collection.record.home();
}

StepwiseCommits::StepwiseCommits(vtkv::SimEnv* env) : m_env(env) {
  m_env->set_step_observer([this] { complete_all(); });
}

StepwiseCommits::~StepwiseCommits() { m_env->set_step_observer({}); }

void StepwiseCommits::complete_all() {
  std::list<Context*> contexts;
  m_queue.move_to(contexts);
  for (Context* const context : contexts) {
    context->complete(0);
  }
}

}  // namespace swimstore
