// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/store_crash_target.h"

#include <fmt/format.h>

#include "common/Finisher.h"
#include "common/ceph_context.h"
#include "common/config.h"
#include "include/Context.h"
#include "os/ObjectStore.h"
#include "swimstore/fsck/fsck.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

uint64_t count_objects(SwimStore& store) {
  std::vector<coll_t> cids;
  store.list_collections(cids);
  std::vector<ghobject_t> oids;
  for (const coll_t& cid : cids) {
    auto handle = store.open_collection(cid);
    ghobject_t next;
    store.collection_list(handle, ghobject_t(), ghobject_t::get_max(), INT_MAX, &oids, &next);
  }
  return oids.size();
}

}  // namespace

StoreCrashTarget::StoreCrashTarget(CephContext* cct, const vtkv::CrashRun& run, const StoreCrashTargetOptions& options)
    : m_cct(cct), m_run(run), m_options(options) {
  use_small_stores(cct, {{"swimstore_cubes", options.workload.moves ? "2" : "1"},
                         {"swimstore_compression_mode", options.workload.compressible ? "force" : "none"},
                         {"swimstore_metadata_path", options.workload.two_file_systems ? kCrashMetadata : ""}});
}

std::string StoreCrashTarget::record(vtkv::SimEnv* env) {
  return record_crash_store(m_cct, env, [this, env](SwimStore& store) { run_transactions(store, env); });
}

void StoreCrashTarget::run_transactions(SwimStore& store, vtkv::SimEnv* env) {
  StepwiseCommits commits(env);
  StoreLoad load(store, m_oracle, m_run.seed, m_options.workload, commits.queue(),
                 [env](uint64_t mark) { env->mark(mark); });
  env->run_until_idle();
  env->restart_trace();

  std::mt19937_64 random(m_run.seed);
  for (unsigned done = 0; done < m_run.steps;) {
    for (uint64_t batch = 1 + random() % m_options.in_flight_max; batch > 0; --batch, ++done) {
      load.queue_one(random);
    }
    if (m_options.workload.moves && random() % 4 == 0) {
      load.move_one(random);
    }
    if (m_options.workload.defragments) {
      load.defragment(random);
    }
    env->run_until_idle();
  }
  if (m_options.defragmented_bytes != nullptr) {
    *m_options.defragmented_bytes += load.defragmented_bytes();
  }
}

std::string StoreCrashTarget::check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t,
                                    std::unique_ptr<vtkv::CrashTarget>* next) {
  std::vector<uint64_t> ids;
  for (const vtkv::SimMark& mark : marks) {
    ids.push_back(mark.id);
  }
  const std::vector<size_t> acknowledged = m_oracle.acknowledged(ids);
  const auto store = open_crash_store(m_cct, env);
  if (m_options.workload.moves) {  // what a move left is no damage
    if (const int errors = store->fsck(true); errors != 0) {
      return fmt::format("fsck before the mount found {} errors", errors);
    }
  }
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  std::vector<size_t> found;
  const std::string wrong = m_oracle.check(*store, acknowledged, &found);
  const uint64_t objects = count_objects(*store);
  store->umount();
  if (!wrong.empty()) {
    return wrong;
  }
  CheckResult result;
  if (const vtkv::Status status = store->check({.deep = true}, &result); !status.ok() || result.errors > 0) {
    return fmt::format("fsck found {} errors {}", result.errors, status.to_string());
  }
  if (result.objects != objects) {
    return fmt::format("there are {} objects, and {} in collections", result.objects, objects);
  }
  if (next) {
    auto target = std::make_unique<StoreCrashTarget>(m_cct, m_run, m_options);
    target->m_oracle = m_oracle;
    target->m_oracle.promise(acknowledged);
    *next = std::move(target);
  }
  return {};
}

}  // namespace swimstore
