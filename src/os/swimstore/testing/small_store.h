// SPDX-License-Identifier: LGPL-2.1-or-later
// What tests of a whole store in a simulated host share: options for a store of a few KiB, and commit contexts that
// complete in the test's one thread, at the moment of simulated time at which the store gives them.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "common/Finisher.h"
#include "include/Context.h"
#include "include/common_fwd.h"

#include "swimstore/cube/cube_set.h"
#include "swimstore/swimstore.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {

using OptionValues = std::initializer_list<std::pair<const char*, const char*>>;
// They stay set. `others` come on top, and may set the same ones again.
void use_small_stores(CephContext* cct, OptionValues others = {});
// Below what the options allow: chunks of a few slots, so that freed ones are soon taken again.
void make_smaller(CubeOptions* options);

inline constexpr const char* kCrashStore = "/store";
inline constexpr const char* kCrashMetadata = "/other/metadata";  // on another file system, where one is asked for
// There, of a crash explorer's target: a failed disk is not tested there.
std::unique_ptr<SwimStore> open_crash_store(CephContext* cct, vtkv::SimEnv* env);
// Makes it, mounts it, hands it to `work` and unmounts it: what a target records. Empty, or what failed.
std::string record_crash_store(CephContext* cct, vtkv::SimEnv* env, const std::function<void(SwimStore&)>& work);

// Of a small store that is not mounted: all its cubes. `opening`: but for their number.
vtkv::Status open_cubes_of(CephContext* cct, vtkv::Env* env, const std::string& path, CubeSet::Opening opening,
                           std::unique_ptr<CubeSet>* cubes);

// The cube that a collection of a mounted store lies in.
unsigned home_of(SwimStore& store, const coll_t& cid);

class StepwiseCommits {
 public:
  explicit StepwiseCommits(vtkv::SimEnv* env);
  ~StepwiseCommits();
  StepwiseCommits(const StepwiseCommits&) = delete;
  StepwiseCommits& operator=(const StepwiseCommits&) = delete;

  // For set_collection_commit_queue. Nothing may be queued on the collection when this is gone.
  ContextQueue* queue() { return &m_queue; }

 private:
  void complete_all();

  vtkv::SimEnv* const m_env;
  ceph::mutex m_mutex = ceph::make_mutex("swimstore::StepwiseCommits");
  ceph::condition_variable m_condition;
  ContextQueue m_queue{m_mutex, m_condition};
};

}  // namespace swimstore
