// SPDX-License-Identifier: LGPL-2.1-or-later
// Flush and compaction at the same time, each left in the middle of its steps, while I/O fails.

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <utility>

#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/tree/tree.h"

namespace vtkv {
namespace {

constexpr uint64_t kRounds = 12;
constexpr uint64_t kKeys = 60;

std::string key_of(uint64_t number) { return "key" + std::to_string(100 + number % kKeys); }

using Content = std::map<std::string, std::string>;

class TreeWorkers {
 public:
  explicit TreeWorkers(uint64_t seed) : m_env({.seed = seed, .record = false, .interleaved = true}) {
    m_options.geometry.zone_bytes = 16 << 10;
    m_options.growth_factor = m_options.runs_per_level = 2;
    m_options.stitch_threshold_bytes = 0;
    m_options.block_cache_bytes = 0;
  }

  Status open() {
    m_tree.reset();
    if (!m_env.exists("/db")) {
      VTKV_RETURN_IF_ERROR(m_env.create_directory("/db"));
      VTKV_RETURN_IF_ERROR(Tree::create(&m_env, "/db", m_options.geometry, Uuid{1, 2, 3}, {}));
    }
    return Tree::open(&m_env, "/db", m_options, &m_tree);
  }

  // Until all rounds are in the tree, or both workers have met an error.
  void run() {
    const auto flusher = m_env.start_worker("flush", 0, [this](IoQueue&) { return flush_step(); });
    const auto compactor = m_env.start_worker("compaction", 0, [this](IoQueue&) { return compaction_step(); });
    m_env.run_until_idle();
  }

  // Opens what is on disk: "" when it is whole, and holds the rounds that were acknowledged, or one more.
  std::string reopen() {
    m_env.clear_faults();
    if (const Status status = open(); !status.ok()) {
      return "open: " + status.to_string();
    }
    std::vector<std::string> findings;
    m_tree->verify(&findings);
    if (!findings.empty()) {
      return "verify: " + findings.front();
    }
    const uint64_t rounds = m_tree->newest_log_position().sequence / 1000;
    if (rounds != m_flushed && rounds != m_flushed + 1) {
      return std::to_string(m_flushed) + " rounds were flushed, " + std::to_string(rounds) + " are there";
    }
    Content content;
    for (uint64_t round = 1; round <= rounds; ++round) {
      fill(round, nullptr, &content);
    }
    for (uint64_t i = 0; i < kKeys; ++i) {
      Lookup result = Lookup::absent;
      std::string value;
      const Status status = m_tree->current()->get(key_of(i), UINT64_MAX, &result, &value);
      const auto expected = content.find(key_of(i));
      if (!status.ok() ||
          (result == Lookup::found ? value : "") != (expected == content.end() ? "" : expected->second)) {
        return "wrong data under " + key_of(i);
      }
    }
    return {};
  }

  SimEnv& env() { return m_env; }
  bool failed() const { return m_failed; }

 private:
  static void fill(uint64_t round, MemTable* table, Content* content) {
    for (uint64_t i = 0; i < 20; ++i) {
      const std::string key = key_of(round * 17 + i), value = std::to_string(round) + std::string(700, 'v');
      if (table) {
        table->put(round * 1000 - 100 + i, key, value);
      }
      (*content)[key] = value;
    }
  }

  NextStep flush_step() {
    if (m_failed || m_flushed == kRounds) {
      return NextStep::on_event();
    }
    MemTable table;
    Content ignored;
    fill(m_flushed + 1, &table, &ignored);
    LogPosition position;
    position.sequence = (m_flushed + 1) * 1000;
    m_failed = !m_tree->flush(table, position, {}).ok();
    m_flushed += m_failed ? 0 : 1;
    return NextStep::now();
  }

  NextStep compaction_step() {
    bool did = false;
    const Status status = m_tree->compact_once({}, &did);
    m_failed = m_failed || !status.ok();
    return !status.ok() || (!did && (m_failed || m_flushed == kRounds)) ? NextStep::on_event() : NextStep::now();
  }

  SimEnv m_env;
  Options m_options;
  std::unique_ptr<Tree> m_tree;
  uint64_t m_flushed = 0;
  bool m_failed = false;
};

// The n-th call fails in whichever worker it is; the other is in the middle of something. "" or what is wrong.
std::string fail_nth(SimCall call, uint64_t n, uint64_t seed, bool* reached) {
  TreeWorkers workers(seed);
  if (const Status status = workers.open(); !status.ok()) {
    return status.to_string();
  }
  workers.env().fail_nth(call, n, Status::from_errno(EIO, "injected"), false);
  workers.run();
  *reached = workers.failed();
  return workers.reopen();
}

class TreeWorkersFaultTest : public testing::TestWithParam<SimCall> {};

TEST_P(TreeWorkersFaultTest, AFailureInOneWhileTheOtherWritesLosesNothing) {
  uint64_t struck = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    bool reached = true;
    for (uint64_t n = 1; reached; ++n) {
      ASSERT_EQ(fail_nth(GetParam(), n, seed, &reached), "") << "call " << n << ", seed " << seed;
      struck += reached;
    }
  }
  std::printf("%lu calls failed, one after the other\n", struck);
  EXPECT_GT(struck, 100u);
}

INSTANTIATE_TEST_SUITE_P(, TreeWorkersFaultTest, testing::Values(SimCall::write, SimCall::sync));

// A rule broken on purpose: the zones of a run that the manifest may name are written again.
TEST(TreeWorkersMutationTest, ZonesFreedAfterAFailedCheckpointAreNoticed) {
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::doubtful_run_freed);
  uint64_t histories = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    bool reached = true;
    for (uint64_t n = 1; reached; ++n, ++histories) {
      if (const std::string wrong = fail_nth(SimCall::sync, n, seed, &reached); !wrong.empty()) {
        std::printf("noticed after %lu histories: %s\n", histories, wrong.c_str());
        return;
      }
    }
  }
  FAIL() << histories << " histories";
}

// --- snapshots ----------------------------------------------------------------------------------------

// What a snapshot at 350 reads after a compaction that was asked for just before: when the compaction asks for the
// list, a version of before the snapshot and one of behind it are flushed together. The list that it gets is of before
// all that.
std::string read_through_late_snapshot() {
  SimEnv env;
  Options options;
  options.geometry.zone_bytes = 16 << 10;
  options.growth_factor = options.runs_per_level = 2;
  EXPECT_TRUE(env.create_directory("/db").ok());
  EXPECT_TRUE(Tree::create(&env, "/db", options.geometry, Uuid{1, 2, 3}, {}).ok());
  std::unique_ptr<Tree> tree;
  EXPECT_TRUE(Tree::open(&env, "/db", options, &tree).ok());
  const auto flush = [&](std::initializer_list<SequenceNumber> sequences,
                         const std::vector<SequenceNumber>& snapshots) {
    MemTable table;
    for (const SequenceNumber sequence : sequences) {
      table.put(sequence, "key", std::to_string(sequence));
    }
    LogPosition position;
    position.sequence = *std::prev(sequences.end());
    EXPECT_TRUE(tree->flush(table, position, snapshots).ok());
  };
  flush({100}, {});
  flush({200}, {});
  bool asked = false;
  const SnapshotSource source = [&] {
    if (!std::exchange(asked, true)) {
      flush({300, 400}, {350});
    }
    return std::vector<SequenceNumber>();
  };
  bool did = false;
  EXPECT_TRUE(tree->compact_once(source, &did).ok());
  EXPECT_TRUE(did && asked);
  Lookup result = Lookup::absent;
  std::string value;
  EXPECT_TRUE(tree->current()->get("key", 350, &result, &value).ok());
  return result == Lookup::found ? value : "nothing";
}

TEST(TreeSnapshotsTest, ACompactionAsksForThemWhenItHasClaimedItsRuns) {
  EXPECT_EQ(read_through_late_snapshot(), "300");
}

TEST(TreeSnapshotsTest, TheyAreLostWhenItAsksBefore) {
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::snapshots_listed_early);
  EXPECT_NE(read_through_late_snapshot(), "300");
}

}  // namespace
}  // namespace vtkv
