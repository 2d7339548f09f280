#include "swimstore/testing/store_explorer.h"

#include <fmt/format.h>

#include "common/Finisher.h"
#include "common/ceph_context.h"
#include "common/config.h"
#include "include/Context.h"
#include "os/ObjectStore.h"
#include "swimstore/swimstore.h"

namespace swimstore {

namespace {

constexpr const char* kPath = "/store";
constexpr unsigned kLanes = 2;
constexpr unsigned kPgBits = 4;

void use_small_stores(CephContext* cct) {
  const std::pair<const char*, const char*> values[] = {
      {"swimstore_log_segment_size", "131072"}, {"swimstore_log_segments", "2"},
      {"swimstore_zone_size", "65536"},         {"swimstore_stretch_size", "4194304"},
      {"swimstore_memtable_size", "65536"},     {"swimstore_primed_ahead_size", "65536"},
      {"swimstore_reserve_size", "1048576"},    {"swimstore_cache_autotune", "false"},
      {"swimstore_cache_size", "8388608"},      {"swimstore_allow_unproven_file_system", "true"},
  };
  for (const auto& [name, value] : values) {
    cct->_conf.set_val_or_die(name, value);
  }
  cct->_conf.apply_changes(nullptr);
}

std::unique_ptr<SwimStore> open_store(CephContext* cct, vtkv::SimEnv* env) {
  auto store = std::make_unique<SwimStore>(cct, kPath, env);
  // A failed disk is no subject here.
  store->set_fatal_handler([](const vtkv::Status& status) { ceph_abort_msg(status.to_string()); });
  return store;
}

// Contexts are completed by the explorer itself: everything happens in one thread.
class CommitQueue {
 public:
  ContextQueue* get() { return &m_queue; }
  void complete_all() {
    std::list<Context*> contexts;
    m_queue.move_to(contexts);
    for (Context* const context : contexts) {
      context->complete(0);
    }
  }

 private:
  ceph::mutex m_mutex = ceph::make_mutex("swimstore::CommitQueue");
  ceph::condition_variable m_condition;
  ContextQueue m_queue{m_mutex, m_condition};
};

uint64_t mark_id(size_t lane, size_t transaction) { return uint64_t{lane} << 32 | transaction; }

}  // namespace

StoreExplorer::StoreExplorer(CephContext* cct, const ExplorerOptions& options) : m_cct(cct), m_options(options) {
  use_small_stores(cct);
  for (unsigned i = 0; i < kLanes; ++i) {
    m_lanes.push_back({coll_t(spg_t(pg_t(i, 1))), std::vector<ModelCollection>(1)});
  }
}

void StoreExplorer::record(vtkv::SimEnv* env) {
  ceph_assert(env->create_directory(kPath).ok());
  ceph_assert(env->sync_directory("/").ok());
  auto store = open_store(m_cct, env);
  store->set_cube_options_hook(m_options.mutate);
  ceph_assert(store->mkfs() == 0);
  ceph_assert(store->mount() == 0);
  CommitQueue commits;
  std::vector<ObjectStore::CollectionHandle> handles;
  std::vector<StoreWorkload> workloads;
  for (size_t i = 0; i < m_lanes.size(); ++i) {
    handles.push_back(store->create_new_collection(m_lanes[i].cid));
    store->set_collection_commit_queue(m_lanes[i].cid, commits.get());
    ObjectStore::Transaction create;
    create.create_collection(m_lanes[i].cid, kPgBits);
    store->queue_transaction(handles[i], std::move(create));
    WorkloadOptions options = m_options.workload;
    options.seed = m_options.seed * kLanes + i;
    workloads.emplace_back(m_lanes[i].cid, options);
  }
  env->run_until_idle();
  commits.complete_all();
  env->restart_trace();

  std::mt19937_64 random(m_options.seed);
  for (unsigned done = 0; done < m_options.transactions;) {
    for (uint64_t batch = 1 + random() % m_options.in_flight_max; batch > 0; --batch, ++done) {
      const size_t i = random() % m_lanes.size();
      ObjectStore::Transaction txn = workloads[i].next();
      m_lanes[i].history.push_back(workloads[i].model());
      const uint64_t id = mark_id(i, m_lanes[i].history.size() - 1);
      txn.register_on_commit(new LambdaContext([env, id](int) { env->mark(id); }));
      store->queue_transaction(handles[i], std::move(txn));
    }
    env->run_until_idle();
    commits.complete_all();
  }
  handles.clear();
  ceph_assert(store->umount() == 0);
}

StoreExplorer::Acknowledged StoreExplorer::acknowledged_at(std::span<const vtkv::SimMark> marks) const {
  Acknowledged acknowledged{std::vector<size_t>(m_lanes.size())};
  for (const vtkv::SimMark& mark : marks) {
    size_t& last = acknowledged.per_lane[mark.id >> 32];
    last = std::max<size_t>(last, mark.id & UINT32_MAX);
  }
  return acknowledged;
}

std::string StoreExplorer::check_contents(SwimStore& store, const Acknowledged& acknowledged) {
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
    for (size_t n = acknowledged.per_lane[i]; n < lane.history.size() && !is_prefix; ++n) {
      is_prefix = lane.history[n] == found;
    }
    if (!is_prefix) {
      return fmt::format("collection {} holds no prefix of at least {} transactions: compared with that one, {}", i,
                         acknowledged.per_lane[i], difference(lane.history[acknowledged.per_lane[i]], found));
    }
  }
  return {};
}

std::string StoreExplorer::check(vtkv::SimEnv* env, const Acknowledged& acknowledged) {
  auto store = open_store(m_cct, env);
  if (const int r = store->mount(); r < 0) {
    return fmt::format("mount failed: {}", r);
  }
  const std::string wrong = check_contents(*store, acknowledged);
  store->umount();
  if (!wrong.empty()) {
    return wrong;
  }
  const int errors = store->fsck(true);
  return errors == 0 ? std::string() : fmt::format("fsck found {} errors", errors);
}

void StoreExplorer::check_nested(const vtkv::SimEnv& recovered, const Acknowledged& acknowledged,
                                 const std::string& where) {
  vtkv::CrashImages images(recovered.trace(), {.seed = m_options.seed});
  const uint64_t count = images.state_count();
  for (size_t i = 0; i < m_options.nested_states_max && i < count; ++i) {
    const vtkv::CrashState state = images.sample(m_options.seed + i);
    const auto env = images.materialize(state);
    ++m_result.nested_states;
    if (const std::string wrong = check(env.get(), acknowledged); !wrong.empty()) {
      m_result.failures.push_back(
          fmt::format("{}, then in its recovery {}: {}", where, state.to_string(), wrong));
    }
  }
}

ExplorerResult StoreExplorer::run() {
  vtkv::SimEnv env({.seed = m_options.seed, .profile = m_options.profile});
  record(&env);
  vtkv::CrashImages images(env.trace(), {.seed = m_options.seed});
  const uint64_t count = images.state_count();
  m_result.cuts = images.cut_count();
  const bool all = count <= m_options.states_max;
  for (size_t i = 0; i < std::min<uint64_t>(count, m_options.states_max); ++i) {
    vtkv::CrashState state;
    if (!all) {
      state = images.sample(m_options.seed * 1000003 + i);
    } else if (!images.next(&state)) {
      break;
    }
    const Acknowledged acknowledged = acknowledged_at(images.marks(state));
    const auto crashed = images.materialize(state);
    const std::string where = fmt::format("seed {} on {}, {}", m_options.seed, vtkv::to_string(m_options.profile),
                                          state.to_string());
    ++m_result.states;
    if (const std::string wrong = check(crashed.get(), acknowledged); !wrong.empty()) {
      m_result.failures.push_back(where + ": " + wrong);
    }
    if (i % m_options.nested_every == 0) {
      check_nested(*crashed, acknowledged, where);
    }
  }
  return m_result;
}

}  // namespace swimstore
