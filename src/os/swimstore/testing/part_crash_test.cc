// SPDX-License-Identifier: LGPL-2.1-or-later
// Omaps in parts after crashes in which each cube has lost a tail of its own.
//
// Of every state: the omap is what the transactions make of it that are left, in the order in which they were queued;
// what was acknowledged is left; a deep fsck finds nothing.

#include <array>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/explored_seeds.h"
#include "swimstore/testing/part_workload.h"
#include "swimstore/testing/small_store.h"
#include "vtkv/testing/crash_explorer.h"
#include "vtkv/testing/mutations.h"

namespace swimstore {
namespace {

using vtkv::CrashExplorer;
using vtkv::CrashRun;
using vtkv::Mutation;
using vtkv::SimProfile;

constexpr unsigned kInFlightMax = 8;

class PartCrashTarget final : public vtkv::CrashTarget {
 public:
  explicit PartCrashTarget(const CrashRun& run) : m_run(run) {
    use_small_stores(g_ceph_context, {{"swimstore_cubes", "4"}});
  }

  std::string record(vtkv::SimEnv* env) override {
    return record_crash_store(g_ceph_context, env, [this, env](SwimStore& store) {
      StepwiseCommits commits(env);
      work(store, env, commits.queue());
    });
  }

  std::string check(vtkv::SimEnv* env, std::span<const vtkv::SimMark> marks, uint64_t,
                    std::unique_ptr<vtkv::CrashTarget>* next) override {
    const auto store = open_crash_store(g_ceph_context, env);
    if (const int r = store->mount(); r < 0) {
      return fmt::format("mount failed: {}", r);
    }
    std::string wrong = compare(*store, marks);
    if (store->umount() < 0 && wrong.empty()) {
      wrong = "umount failed";
    }
    if (const int errors = wrong.empty() ? store->fsck(true) : 0; errors != 0) {
      wrong = fmt::format("fsck found {} errors", errors);
    }
    if (next) {
      auto target = std::make_unique<PartCrashTarget>(m_run);
      target->m_steps = m_steps;
      target->m_promised = m_promised;
      for (const vtkv::SimMark& mark : marks) {
        target->m_promised[m_steps[mark.id - 1].by] = mark.id;
      }
      *next = std::move(target);
    }
    return wrong;
  }

 private:
  void work(SwimStore& store, vtkv::SimEnv* env, ContextQueue* queue) {
    auto handles = PartWorkload::open(store);
    for (unsigned by = 0; by < handles.size(); ++by) {
      store.set_collection_commit_queue(PartWorkload::collection(by), queue);
      store.queue_transaction(handles[by], PartWorkload::setup(by));
    }
    env->run_until_idle();
    env->restart_trace();
    PartWorkload workload(m_run.seed);
    std::mt19937_64 random(m_run.seed);
    while (m_steps.size() < m_run.steps) {
      for (uint64_t together = 1 + random() % kInFlightMax; together > 0; --together) {
        m_steps.push_back(workload.next());
        const uint64_t number = m_steps.size();
        ObjectStore::Transaction txn = PartWorkload::transaction(m_steps.back(), number);
        txn.register_on_commit(new LambdaContext([env, number](int) { env->mark(number); }));
        store.queue_transaction(handles[m_steps.back().by], std::move(txn));
      }
      env->run_until_idle();
    }
  }

  std::string compare(SwimStore& store, std::span<const vtkv::SimMark> marks) {
    auto handles = PartWorkload::open(store);
    Counts counts{};
    for (unsigned by = 0; by < handles.size(); ++by) {
      counts[by] = PartWorkload::count(store, by, handles[by]);
      if (counts[by] < m_promised[by]) {
        return fmt::format("transaction {} of collection {} was acknowledged, and is gone", m_promised[by], by);
      }
    }
    for (const vtkv::SimMark& mark : marks) {
      if (const unsigned by = m_steps[mark.id - 1].by; mark.id > counts[by]) {
        return fmt::format("transaction {} of collection {} was acknowledged, and is gone", mark.id, by);
      }
    }
    PartWorkload::Omap expected;
    for (size_t i = 0; i < m_steps.size(); ++i) {
      if (i + 1 <= counts[m_steps[i].by]) {
        PartWorkload::apply(m_steps[i], &expected);
      }
    }
    std::string wrong;
    const PartWorkload::Omap found = PartWorkload::read(store, handles[0], &wrong);
    if (wrong.empty() && found != expected) {
      wrong = fmt::format("the omap is {}, it should be {}", to_string(found), to_string(expected));
    }
    return wrong;
  }

  using Counts = std::array<uint64_t, PartWorkload::kGroups + 1>;

  const CrashRun m_run;
  std::vector<PartStep> m_steps;
  Counts m_promised{};  // acknowledged before an earlier crash
};

CrashExplorer new_explorer() {
  return CrashExplorer([](const CrashRun& run) { return std::make_unique<PartCrashTarget>(run); });
}

class PartCrashTest : public ::testing::Test {
 protected:
  void TearDown() override { use_small_stores(g_ceph_context, {{"swimstore_cubes", "1"}}); }

  static void explore(uint64_t first_seed, SimProfile profile) {
    CrashExplorer explorer = new_explorer();
    expect_no_violation(explorer, {"parts", {}, profile, first_seed, 60}, 4,
                        {.states = 400, .nested_every = 20, .nested_states = 4});
  }
};

TEST_F(PartCrashTest, TheOmapIsWhatTheTransactionsMakeOfItThatAreLeft) { explore(1, SimProfile::ext4); }
TEST_F(PartCrashTest, AlsoWhereEachFileIsFlushedByItself) { explore(101, SimProfile::weakest); }

// Where two cubes remove a key one after the other, and a crash takes back the first removal alone.
TEST_F(PartCrashTest, ATombstoneLeftOutIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  CrashExplorer explorer = new_explorer();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto violation = explorer.explore({"parts", Mutation::tombstone_left_out, SimProfile::ext4, seed, 60},
                                            {.states = 300, .nested_every = 0});
    if (violation) {
      std::printf("noticed after %lu states: %s\n", explorer.counts().states, violation->what.c_str());
      return;
    }
  }
  FAIL() << "no crash state told that the rule was broken";
}

}  // namespace
}  // namespace swimstore
