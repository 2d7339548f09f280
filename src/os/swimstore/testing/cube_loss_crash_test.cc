// SPDX-License-Identifier: LGPL-2.1-or-later
// Crashes in which a store loses a cube, too.
//
// Of every state, once for each data cube that is then removed: the groups of the others have what was acknowledged;
// those of the removed one are there, empty, and remember every epoch that was acknowledged.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "common/code_environment.h"
#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/group_info.h"
#include "swimstore/testing/small_store.h"
#include "swimstore/transaction/placement.h"
#include "vtkv/testing/crash_explorer.h"
#include "vtkv/testing/mutations.h"

namespace swimstore {
namespace {

using vtkv::CrashExplorer;
using vtkv::CrashRun;
using vtkv::Mutation;
using vtkv::SimProfile;

constexpr unsigned kGroups = 4;
constexpr unsigned kDataCubes = 2;
constexpr unsigned kInFlightMax = 6;

coll_t group(unsigned number) { return coll_t(spg_t(pg_t(number, 1))); }

class CubeLossTarget final : public vtkv::CrashTarget {
 public:
  explicit CubeLossTarget(const CrashRun& run) : m_run(run) { use("refuse"); }

  std::string record(vtkv::SimEnv* env) override {
    return record_crash_store(g_ceph_context, env, [this, env](SwimStore& store) {
      StepwiseCommits commits(env);
      work(store, env, commits.queue());
    });
  }

  // Which one is lost, the state decides. A second crash strikes the mount that goes on without it.
  std::string check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t,
                    std::unique_ptr<vtkv::CrashTarget>* next) override {
    const unsigned lost = m_lost != 0 ? m_lost : 1 + static_cast<unsigned>(marks.size()) % kDataCubes;
    const std::string below = fmt::format("{}/cubes/{}/", kCrashStore, lost);
    for (const std::string& file : env->files()) {
      if (file.starts_with(below) && !env->remove_file(file).ok()) {
        return "a file cannot be removed";
      }
    }
    Acknowledged acknowledged = m_acknowledged;
    for (const vtkv::SimMark& mark : marks) {
      epoch_t& last = acknowledged[m_steps[mark.id - 1]];
      last = std::max(last, static_cast<epoch_t>(mark.id + 1));
    }
    if (next) {
      auto target = std::make_unique<CubeLossTarget>(m_run);
      target->m_steps = m_steps;
      target->m_acknowledged = acknowledged;
      target->m_lost = lost;
      *next = std::move(target);
    }
    use("incomplete");
    const auto store = open_crash_store(g_ceph_context, env);
    g_code_env = CODE_ENVIRONMENT_DAEMON;
    const int r = store->mount();
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    if (r < 0) {
      return fmt::format("mount failed: {}", r);
    }
    std::string wrong = compare(*store, acknowledged, lost);
    if (store->umount() < 0 && wrong.empty()) {
      wrong = "umount failed";
    }
    if (const int errors = wrong.empty() ? store->fsck(true) : 0; errors != 0) {
      wrong = fmt::format("fsck found {} errors", errors);
    }
    return wrong;
  }

 private:
  using Acknowledged = std::map<unsigned, epoch_t>;  // the last of each group

  static void use(const char* damaged_cubes) {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "2"}, {"swimstore_mount_damaged_cubes", damaged_cubes}});
  }
  // The number of a step is the epoch that its group starts in.
  void work(SwimStore& store, vtkv::SimEnv* env, ContextQueue* queue) {
    std::vector<ObjectStore::CollectionHandle> handles;
    for (unsigned number = 0; number < kGroups; ++number) {
      handles.push_back(store.create_new_collection(group(number)));
      store.set_collection_commit_queue(group(number), queue);
      ObjectStore::Transaction make;
      make.create_collection(group(number), 2);
      put_info(group(number), 1, &make);
      make.register_on_commit(new LambdaContext([this](int) { ++m_made; }));
      store.queue_transaction(handles.back(), std::move(make));
    }
    while (m_made < kGroups) {
      env->advance(std::chrono::milliseconds(1));
    }
    env->restart_trace();
    std::mt19937_64 random(m_run.seed);
    while (m_steps.size() < m_run.steps) {
      for (uint64_t together = 1 + random() % kInFlightMax; together > 0; --together) {
        const unsigned number = random() % kGroups;
        m_steps.push_back(number);
        const uint64_t step = m_steps.size();
        ObjectStore::Transaction txn;
        put_info(group(number), static_cast<epoch_t>(step + 1), &txn);
        txn.register_on_commit(new LambdaContext([env, step](int) { env->mark(step); }));
        store.queue_transaction(handles[number], std::move(txn));
      }
      env->run_until_idle();
    }
  }

  std::string compare(SwimStore& store, Acknowledged& acknowledged, unsigned lost) {
    for (unsigned number = 0; number < kGroups; ++number) {
      const std::optional<pg_info_t> info = read_info(store, group(number));
      if (!info) {
        return fmt::format("group {} has no info", number);
      }
      const bool is_lost = new_home(group(number), kDataCubes + 1) == lost;
      if (is_lost != info->is_incomplete()) {
        return fmt::format("group {} {}", number, is_lost ? "was lost, and is whole" : "is incomplete");
      }
      const epoch_t remembers = is_lost ? info->history.last_epoch_started : info->last_epoch_started;
      if (remembers < acknowledged[number]) {
        return fmt::format("group {} remembers epoch {}, and {} was acknowledged", number, remembers,
                           acknowledged[number]);
      }
    }
    return {};
  }

  const CrashRun m_run;
  std::vector<unsigned> m_steps;  // the group of each
  unsigned m_made = 0;  // groups
  unsigned m_lost = 0;  // before an earlier crash; 0: none
  Acknowledged m_acknowledged;  // before an earlier crash
};

CrashExplorer new_explorer() {
  return CrashExplorer([](const CrashRun& run) { return std::make_unique<CubeLossTarget>(run); });
}

class CubeLossCrashTest : public ::testing::Test {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context, {{"swimstore_cubes", "1"}}); }
};

TEST_F(CubeLossCrashTest, ALostGroupRemembersWhatWasAcknowledged) {
  CrashExplorer explorer = new_explorer();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto violation =
        explorer.explore({"cube_loss", {}, seed % 2 ? SimProfile::ext4 : SimProfile::weakest, seed, 40},
                         {.states = 200, .nested_every = 10, .nested_states = 6});
    ASSERT_FALSE(violation) << to_script(*violation);
  }
  std::printf("%lu states, %lu nested, %lu distinct\n", explorer.counts().states, explorer.counts().nested,
              explorer.counts().distinct);
  EXPECT_GT(explorer.counts().nested, 0u);
  EXPECT_GT(explorer.counts().states, 0u);
}

TEST_F(CubeLossCrashTest, AWitnessThatIsNotAwaitedIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer = new_explorer();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto violation = explorer.explore({"cube_loss", Mutation::witness_not_awaited, SimProfile::ext4, seed, 40},
                                            {.states = 200, .nested_every = 0});
    if (violation) {
      std::printf("noticed after %lu states: %s\n", explorer.counts().states, violation->what.c_str());
      return;
    }
  }
  FAIL() << "no crash state told that the rule was broken";
}

}  // namespace
}  // namespace swimstore
