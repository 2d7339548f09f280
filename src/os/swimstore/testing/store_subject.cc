#include "swimstore/testing/store_subject.h"

#include <fmt/format.h>

#include "common/Finisher.h"
#include "common/ceph_context.h"
#include "common/config.h"
#include "include/Context.h"
#include "os/ObjectStore.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {

namespace {

constexpr const char* kPath = "/store";
constexpr unsigned kLanes = 2;
constexpr unsigned kPgBits = 4;

uint64_t mark_id(size_t lane, size_t transaction) { return uint64_t{lane} << 32 | transaction; }

}  // namespace

StoreSubject::StoreSubject(CephContext* cct, const vtkv::CrashRun& run, const StoreSubjectOptions& options)
    : m_cct(cct), m_run(run), m_options(options) {
  use_small_stores(cct);
  for (unsigned i = 0; i < kLanes; ++i) {
    m_lanes.push_back({coll_t(spg_t(pg_t(i, 1))), std::vector<ModelCollection>(1)});
  }
}

std::unique_ptr<SwimStore> StoreSubject::open_store(vtkv::SimEnv* env) const {
  auto store = std::make_unique<SwimStore>(m_cct, kPath, env);
  // A failed disk is no subject here.
  store->set_fatal_handler([](const vtkv::Status& status) { ceph_abort_msg(status.to_string()); });
  store->set_cube_options_hook(m_options.mutate);
  return store;
}

std::string StoreSubject::record(vtkv::SimEnv* env) {
  if (!env->create_directory(kPath).ok() || !env->sync_directory("/").ok()) {
    return "the directory cannot be made";
  }
  const auto store = open_store(env);
  if (const int r = store->mkfs(); r < 0) {
    return fmt::format("mkfs failed: {}", r);
  }
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  run_transactions(*store, env);
  const int r = store->umount();
  return r == 0 ? "" : fmt::format("umount failed: {}", r);
}

void StoreSubject::run_transactions(SwimStore& store, vtkv::SimEnv* env) {
  StepwiseCommits commits(env);
  std::vector<ObjectStore::CollectionHandle> handles;
  std::vector<StoreWorkload> workloads;
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    handles.push_back(store.create_new_collection(m_lanes[i].cid));
    store.set_collection_commit_queue(m_lanes[i].cid, commits.queue());
    ObjectStore::Transaction create;
    create.create_collection(m_lanes[i].cid, kPgBits);
    store.queue_transaction(handles[i], std::move(create));
    WorkloadOptions options = m_options.workload;
    options.seed = m_run.seed * kLanes + i;
    workloads.emplace_back(m_lanes[i].cid, options);
  }
  env->run_until_idle();
  env->restart_trace();

  std::mt19937_64 random(m_run.seed);
  for (unsigned done = 0; done < m_run.steps;) {
    for (uint64_t batch = 1 + random() % m_options.in_flight_max; batch > 0; --batch, ++done) {
      const size_t i = random() % m_lanes.size();
      ObjectStore::Transaction txn = workloads[i].next();
      m_lanes[i].history.push_back(workloads[i].model());
      const uint64_t id = mark_id(i, m_lanes[i].history.size() - 1);
      txn.register_on_commit(new LambdaContext([env, id](int) { env->mark(id); }));
      store.queue_transaction(handles[i], std::move(txn));
    }
    env->run_until_idle();
  }
}

std::vector<size_t> StoreSubject::acknowledged_at(std::span<const vtkv::SimMark> marks) const {
  std::vector<size_t> acknowledged;
  for (const Lane& lane : m_lanes) {
    acknowledged.push_back(lane.acknowledged);
  }
  for (const vtkv::SimMark& mark : marks) {
    size_t& last = acknowledged[mark.id >> 32];
    last = std::max<size_t>(last, mark.id & UINT32_MAX);
  }
  return acknowledged;
}

std::string StoreSubject::check_contents(SwimStore& store, const std::vector<size_t>& acknowledged) const {
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    const Lane& lane = m_lanes[i];
    auto handle = store.open_collection(lane.cid);
    if (!handle) {
      return fmt::format("collection {} is gone", i);
    }
    std::string error;
    const ModelCollection found = read_collection(store, handle, &error);
    if (!error.empty()) {
      return error;
    }
    bool is_prefix = false;
    for (size_t n = acknowledged[i]; n < lane.history.size() && !is_prefix; ++n) {
      is_prefix = lane.history[n] == found;
    }
    if (!is_prefix) {
      return fmt::format("collection {} holds no prefix of at least {} transactions: compared with that one, {}", i,
                         acknowledged[i], difference(lane.history[acknowledged[i]], found));
    }
  }
  return {};
}

std::string StoreSubject::check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t,
                                std::unique_ptr<vtkv::CrashSubject>* next) {
  const std::vector<size_t> acknowledged = acknowledged_at(marks);
  const auto store = open_store(env);
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  std::string wrong = check_contents(*store, acknowledged);
  store->umount();
  if (!wrong.empty()) {
    return wrong;
  }
  if (const int errors = store->fsck(true); errors != 0) {
    return fmt::format("fsck found {} errors", errors);
  }
  if (next) {
    auto subject = std::make_unique<StoreSubject>(m_cct, m_run, m_options);
    subject->m_lanes = m_lanes;
    for (size_t i = 0; i < m_lanes.size(); ++i) {
      subject->m_lanes[i].acknowledged = acknowledged[i];
    }
    *next = std::move(subject);
  }
  return {};
}

}  // namespace swimstore
