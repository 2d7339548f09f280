// SPDX-License-Identifier: LGPL-2.1-or-later
// The tree on a disk that fails, lies or loses power.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/tree/tree.h"

namespace vtkv {
namespace {

using Content = std::map<std::string, std::string>;

Options small_options() {
  Options options;
  options.geometry.zone_bytes = 16 << 10;
  options.geometry.log_segment_bytes = 16 << 10;
  options.growth_factor = options.runs_per_level = 2;
  options.stitch_threshold_bytes = 0;
  options.block_cache_bytes = 0;
  return options;
}

LogPosition position(SequenceNumber sequence) { return {sequence, 1, 1, sequence * 4096, 0}; }

constexpr uint64_t kKeys = 90;

std::string key_of(uint64_t number) { return "key" + std::to_string(100 + number % kKeys); }

// Round n: 30 neighbours put, so that their blocks can be stitched; a few keys removed, and a range. Sequences
// 100 n …
void fill(uint64_t round, MemTable* table, Content* content) {
  SequenceNumber s = round * 100;
  for (uint64_t i = 0; i < 30; ++i) {
    const std::string key = key_of(round * 40 + i), value = std::to_string(round) + std::string(500, 'v');
    table->put(++s, key, value);
    (*content)[key] = value;
  }
  for (uint64_t i = 0; i < 5; ++i) {
    const std::string key = key_of(round * 40 + 27 + i);
    table->remove(++s, key);
    content->erase(key);
  }
  const std::string begin = key_of(round * 13), end = begin + "~";
  table->remove_range(++s, begin, end);
  content->erase(content->lower_bound(begin), content->lower_bound(end));
}

Content model_after(uint64_t rounds) {
  Content content;
  for (uint64_t round = 1; round <= rounds; ++round) {
    MemTable table;
    fill(round, &table, &content);
  }
  return content;
}

// Everything that get() finds; the first error ends it.
Status read_all(const Tree& tree, Content* content) {
  const auto version = tree.current();
  for (uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = key_of(i);
    Lookup result;
    std::string value;
    VTKV_RETURN_IF_ERROR(version->get(key, UINT64_MAX, &result, &value));
    if (result == Lookup::found) {
      (*content)[key] = value;
    }
  }
  return {};
}

uint64_t stitched_bytes = 0;  // by all runs of run()

// Flushes and compacts; marks what became durable: the round.
Status run(SimEnv* env, uint64_t first_round, uint64_t last_round) {
  std::unique_ptr<Tree> tree;
  VTKV_RETURN_IF_ERROR(Tree::open(env, "/db", small_options(), &tree));
  for (uint64_t round = first_round; round <= last_round; ++round) {
    MemTable table;
    Content unused;
    fill(round, &table, &unused);
    VTKV_RETURN_IF_ERROR(tree->flush(table, position(round * 100), {}));
    env->mark(round);
    bool did = false;
    VTKV_RETURN_IF_ERROR(tree->compact_once({}, &did));
  }
  stitched_bytes += tree->statistics().stitched_bytes;
  return {};
}

std::unique_ptr<SimEnv> make_tree(SimProfile profile, uint64_t rounds) {
  auto env = std::make_unique<SimEnv>(SimOptions{.seed = 3, .profile = profile});
  EXPECT_TRUE(env->create_directory("/db").ok());
  EXPECT_TRUE(Tree::create(env.get(), "/db", small_options().geometry, Uuid{9}, {}).ok());
  EXPECT_TRUE(run(env.get(), 1, rounds).ok());
  return env;
}

class TreeCrashTest : public testing::TestWithParam<SimProfile> {};

// After a crash the tree is that of the newest checkpoint that was acknowledged, or of one under way.
TEST_P(TreeCrashTest, EveryCrashLeavesAWholeCheckpoint) {
  auto env = make_tree(GetParam(), 2);
  env->restart_trace();
  constexpr uint64_t kLast = 9;
  stitched_bytes = 0;
  ASSERT_TRUE(run(env.get(), 3, kLast).ok());
  ASSERT_GT(stitched_bytes, 0u);
  std::vector<Content> models;
  for (uint64_t round = 0; round <= kLast; ++round) {
    models.push_back(model_after(round));
  }
  CrashImages images(env->trace(), {.seed = 1, .exhaustive_max = 8, .drop_two_max = 100, .samples = 60});
  uint64_t states = 0;
  for (CrashState state; images.next(&state); ++states) {
    uint64_t acknowledged = 2;
    for (const SimMark& mark : images.marks(state)) {
      acknowledged = std::max(acknowledged, mark.id);
    }
    auto crashed = images.materialize(state);
    std::unique_ptr<Tree> tree;
    const Status opened = Tree::open(crashed.get(), "/db", small_options(), &tree);
    ASSERT_TRUE(opened.ok()) << opened.to_string() << "\n" << state.to_string();
    const uint64_t round = tree->newest_log_position().sequence / 100;
    ASSERT_GE(round, acknowledged) << state.to_string();
    ASSERT_LE(round, kLast);
    Content content;
    const Status read = read_all(*tree, &content);
    ASSERT_TRUE(read.ok()) << read.to_string() << "\n" << state.to_string();
    ASSERT_EQ(content, models[round]) << state.to_string();
    // And it goes on working from there.
    if (states % 16 == 0 && round < kLast) {
      tree.reset();
      ASSERT_TRUE(run(crashed.get(), round + 1, kLast).ok());
      ASSERT_TRUE(Tree::open(crashed.get(), "/db", small_options(), &tree).ok());
      content.clear();
      ASSERT_TRUE(read_all(*tree, &content).ok());
      ASSERT_EQ(content, models[kLast]);
    }
  }
  EXPECT_GT(states, 200u);
}

TEST_P(TreeCrashTest, ACrashWhileATreeIsMadeLeavesNoneOrAWholeOne) {
  SimEnv env({.seed = 3, .profile = GetParam()});
  ASSERT_TRUE(env.create_directory("/db").ok());
  ASSERT_TRUE(env.sync_directory("/").ok());
  env.restart_trace();
  ASSERT_TRUE(Tree::create(&env, "/db", small_options().geometry, Uuid{9}, {}).ok());
  CrashImages images(env.trace(), {});
  int whole = 0, none = 0;
  for (CrashState state; images.next(&state);) {
    auto crashed = images.materialize(state);
    std::unique_ptr<Tree> tree;
    if (crashed->exists("/db/manifest")) {
      const Status status = Tree::open(crashed.get(), "/db", small_options(), &tree);
      ASSERT_TRUE(status.ok()) << status.to_string() << "\n" << state.to_string();
      ++whole;
    } else {
      ASSERT_TRUE(Tree::create(crashed.get(), "/db", small_options().geometry, Uuid{9}, {}).ok());
      ASSERT_TRUE(Tree::open(crashed.get(), "/db", small_options(), &tree).ok());
      ++none;
    }
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(whole, 0);
}

INSTANTIATE_TEST_SUITE_P(Profiles, TreeCrashTest,
                         testing::Values(SimProfile::ext4, SimProfile::xfs, SimProfile::weakest),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class TreeDamageTest : public testing::Test {
 protected:
  // With the two copies at different states, so that falling back shows.
  void SetUp() override {
    m_env = make_tree(SimProfile::ext4, kRounds);
    m_newest = model_after(kRounds);
    m_before = model_after(kRounds - 1);
  }
  static constexpr uint64_t kRounds = 6;
  std::unique_ptr<SimEnv> m_env;
  Content m_newest, m_before;
};

TEST_F(TreeDamageTest, ADamagedSectorGivesAnErrorOrTheRightData) {
  int errors = 0, right = 0;
  for (const std::string path : {"/db/tree", "/db/manifest"}) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env->open_file(path, {}, &file).ok());
    uint64_t bytes = 0;
    ASSERT_TRUE(file->size(&bytes).ok());
    for (uint64_t sector = 0; sector < bytes; sector += 512) {
      const uint64_t at = sector + sector / 512 * 37 % 512;
      m_env->flip_bits(path, at, 0x10);
      std::unique_ptr<Tree> tree;
      Content content;
      Status status = Tree::open(m_env.get(), "/db", small_options(), &tree);
      if (status.ok()) {
        status = read_all(*tree, &content);
      }
      if (status.ok()) {
        // The older checkpoint, which the log makes up for, when the newest copy is hit.
        const bool fell_back = tree->newest_log_position().sequence < kRounds * 100;
        ASSERT_EQ(content, fell_back ? m_before : m_newest) << path << " byte " << at;
        ++right;
      } else {
        ASSERT_TRUE(status.is_corruption()) << status.to_string();
        ASSERT_NE(status.message().find("/db/"), std::string_view::npos) << status.to_string();
        ++errors;
      }
      m_env->flip_bits(path, at, 0x10);
    }
  }
  EXPECT_GT(errors, 10);
  EXPECT_GT(right, 10);
}

TEST_F(TreeDamageTest, VerifyFindsEveryDamageThatReadersMeet) {
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env->open_file("/db/tree", {}, &file).ok());
  uint64_t bytes = 0;
  ASSERT_TRUE(file->size(&bytes).ok());
  std::unique_ptr<Tree> tree;
  ASSERT_TRUE(Tree::open(m_env.get(), "/db", small_options(), &tree).ok());
  std::vector<std::string> findings;
  tree->verify(&findings);
  ASSERT_TRUE(findings.empty()) << findings.front();
  int met = 0;
  for (uint64_t block = 0; block < bytes; block += 4096) {
    m_env->flip_bits("/db/tree", block + 40, 0x10);
    Content content;
    findings.clear();
    tree->verify(&findings);
    if (!read_all(*tree, &content).ok()) {
      ++met;
      EXPECT_FALSE(findings.empty()) << block;
    }
    m_env->flip_bits("/db/tree", block + 40, 0x10);
  }
  EXPECT_GT(met, 3);
}

TEST_F(TreeDamageTest, AReadErrorIsTriedAgainAndThenReported) {
  std::unique_ptr<Tree> tree;
  ASSERT_TRUE(Tree::open(m_env.get(), "/db", small_options(), &tree).ok());
  Content content;
  m_env->fail_nth(SimCall::read, 1, Status::from_errno(EIO, "bad sector"), false);
  EXPECT_TRUE(read_all(*tree, &content).ok());
  EXPECT_EQ(content, m_newest);
  m_env->fail_nth(SimCall::read, 1, Status::from_errno(EIO, "bad sector"), true);
  content.clear();
  const Status status = read_all(*tree, &content);
  EXPECT_EQ(status.code(), Status::Code::io_error);
  EXPECT_EQ(status.error_number(), EIO);
  m_env->clear_faults();
}

// Whatever fails, what was acknowledged stays, and an error is reported, not swallowed.
TEST_F(TreeDamageTest, AnyFailingCallLeavesTheAcknowledgedState) {
  for (const SimCall call : {SimCall::write, SimCall::sync, SimCall::allocate, SimCall::read}) {
    for (uint64_t n = 1; n < 200; ++n) {
      auto env = make_tree(SimProfile::ext4, 3);
      env->restart_trace();
      const uint64_t before = env->calls(call);
      env->fail_nth(call, n, Status::from_errno(call == SimCall::allocate ? ENOSPC : EIO, "fault"), true);
      const Status status = run(env.get(), 4, 8);
      const bool struck = env->calls(call) - before >= n;
      env->clear_faults();
      uint64_t acknowledged = 3;
      for (const SimMark& mark : env->trace().marks) {
        acknowledged = std::max(acknowledged, mark.id);
      }
      // A flush that cannot look below it for what a range tombstone hides keeps the tombstone, and is no failure.
      EXPECT_TRUE((call == SimCall::read && status.ok()) || status.ok() == !struck) << n;
      std::unique_ptr<Tree> tree;
      ASSERT_TRUE(Tree::open(env.get(), "/db", small_options(), &tree).ok());
      const uint64_t round = tree->newest_log_position().sequence / 100;
      ASSERT_GE(round, acknowledged);
      Content content;
      ASSERT_TRUE(read_all(*tree, &content).ok());
      ASSERT_EQ(content, model_after(round)) << n;
      if (!struck) {
        ASSERT_GT(n, 1u);
        break;
      }
    }
  }
}

TEST_F(TreeDamageTest, AfterNoSpaceAFlushCanBeTriedAgain) {
  std::unique_ptr<Tree> tree;
  ASSERT_TRUE(Tree::open(m_env.get(), "/db", small_options(), &tree).ok());
  MemTable table;
  SequenceNumber s = 10000;
  for (int i = 0; i < 2000; ++i) {
    table.put(++s, "new" + std::to_string(i), std::string(100, 'n'));
  }
  m_env->set_capacity(m_env->allocated_bytes() + (32 << 10));
  EXPECT_TRUE(tree->flush(table, position(20000), {}).is_no_space());
  m_env->set_capacity(1 << 30);
  const Status status = tree->flush(table, position(20000), {});
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(TreeDamageTest, NothingIsWrittenAfterAFailedSync) {
  std::unique_ptr<Tree> tree;
  ASSERT_TRUE(Tree::open(m_env.get(), "/db", small_options(), &tree).ok());
  MemTable table;
  table.put(10000, "a", "b");
  m_env->fail_nth(SimCall::sync, 1, Status::from_errno(EIO, "fault"), false);
  EXPECT_FALSE(tree->flush(table, position(10000), {}).ok());
  const uint64_t writes = m_env->calls(SimCall::write);
  EXPECT_FALSE(tree->flush(table, position(10000), {}).ok());
  EXPECT_FALSE(tree->compact_all({}).ok());
  EXPECT_EQ(m_env->calls(SimCall::write), writes);
}

TEST_F(TreeDamageTest, AMissingZoneFileIsNamed) {
  ASSERT_TRUE(m_env->remove_file("/db/tree").ok());
  std::unique_ptr<Tree> tree;
  const Status status = Tree::open(m_env.get(), "/db", small_options(), &tree);
  EXPECT_TRUE(status.is_corruption());
  EXPECT_NE(status.message().find("/db/tree is missing"), std::string_view::npos);
}

}  // namespace
}  // namespace vtkv
