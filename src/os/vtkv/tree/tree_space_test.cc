// SPDX-License-Identifier: LGPL-2.1-or-later
// A tree whose file system has no room now and then: it may be tried again, and nothing is lost meanwhile.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <set>

#include "vtkv/background_error.h"
#include "vtkv/testing/crash_images.h"
#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class TreeSpaceTest : public TreeFixture {
 protected:
  // Puts the number under 40 keys, and lets the position follow.
  Status flush(SequenceNumber number) {
    MemTable table;
    for (int i = 0; i < 40; ++i) {
      table.put(number * 100 + i, "key" + std::to_string(100 + i), std::to_string(number) + std::string(300, 'v'));
    }
    LogPosition position;
    position.sequence = number * 100 + 99;
    return m_tree->flush(table, position, {});
  }
  // The manifest's write follows.
  uint64_t writes_of_a_run() {
    MemTable table;
    table.put(1, "key", "value");
    SimEnv env({.record = false});
    std::unique_ptr<Tree> tree;
    EXPECT_TRUE(env.create_directory("/db").ok());
    EXPECT_TRUE(Tree::create(&env, "/db", m_options.geometry, Uuid{1, 2, 3}, {}).ok());
    EXPECT_TRUE(Tree::open(&env, "/db", m_options, &tree).ok());
    const uint64_t before = env.calls(SimCall::write);
    EXPECT_TRUE(tree->flush(table, {1, 1, 1, 4096, 7}, {}).ok());
    return env.calls(SimCall::write) - before - 1;
  }
  std::string read() {
    Lookup result = Lookup::absent;
    std::string value;
    const Status status = m_tree->current()->get("key120", UINT64_MAX, &result, &value);
    return status.ok() ? value.substr(0, value.find('v')) : status.to_string();
  }
};

// The n-th write has no room: be it a block's, or the manifest's.
TEST_F(TreeSpaceTest, AFlushIsTriedAgain) {
  make();
  ASSERT_TRUE(flush(1).ok());
  SequenceNumber number = 2;
  uint64_t failed = 0;
  for (uint64_t n = 1; n < 20; ++n) {
    m_env.fail_nth(SimCall::write, n, Status::from_errno(ENOSPC, "injected"), false);
    const Status status = flush(number);
    m_env.clear_faults();
    if (!status.ok()) {
      ++failed;
      EXPECT_TRUE(status.is_no_space()) << status.to_string();
      EXPECT_TRUE(m_tree->failure().ok());
      EXPECT_EQ(read(), std::to_string(number - 1));
      ASSERT_TRUE(flush(number).ok()) << "after write " << n;
    }
    EXPECT_EQ(read(), std::to_string(number));
    open();
    EXPECT_EQ(read(), std::to_string(number));
    ++number;
  }
  EXPECT_GE(failed, 3u);
}

// A purge's runs, say, are no compaction of everything.
TEST_F(TreeSpaceTest, CompactingEverythingIsNotDoneWithWhatWasKept) {
  m_options.runs_per_level = m_options.growth_factor = 8;
  m_options.purge_tombstones_min = 1;
  uint64_t kept = 0;
  bool purged = false;
  for (uint64_t n = 1; !purged; ++n) {
    SimEnv env({.record = false});
    ASSERT_TRUE(env.create_directory("/db").ok());
    ASSERT_TRUE(Tree::create(&env, "/db", m_options.geometry, Uuid{1, 2, 3}, {}).ok());
    ASSERT_TRUE(Tree::open(&env, "/db", m_options, &m_tree).ok());
    ASSERT_TRUE(flush(1).ok());
    MemTable table;
    for (int i = 0; i < 30; ++i) {
      const std::string key = "key" + std::to_string(90 + i);
      i < 20 ? table.remove(200 + i, "key" + std::to_string(100 + i)) : table.put(200 + i, key, "new");
    }
    LogPosition position;
    position.sequence = 299;
    ASSERT_TRUE(m_tree->flush(table, position, {}).ok());
    env.fail_nth(SimCall::write, n, Status::from_errno(ENOSPC, "injected"), true);
    const Status status = m_tree->compact_once({}, &purged);
    env.clear_faults();
    ASSERT_EQ(status.ok(), purged) << status.to_string();
    kept += m_tree->statistics().compaction_bytes > 0 && !purged ? 1 : 0;
    ASSERT_TRUE(m_tree->compact_all({}).ok());
    EXPECT_EQ(m_tree->statistics().runs, 1u) << "after write " << n;
    m_tree.reset();
  }
  EXPECT_GT(kept, 0u);
}

// Some zones are free, and the first of them has no space: the next open asks the host which ones do.
TEST_F(TreeSpaceTest, AFlushOnAFullHostTakesTheZonesThatHaveSpace) {
  make();
  for (SequenceNumber number = 1; number <= 30; ++number) {
    ASSERT_TRUE(flush(number).ok());
  }
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  ASSERT_TRUE(flush(31).ok());
  const std::vector<ZoneUsage> zones = m_tree->zone_usage();
  const auto free = std::find_if(zones.begin(), zones.end(), [](const ZoneUsage& zone) { return !zone.in_use; });
  ASSERT_GT(std::count_if(free, zones.end(), [](const ZoneUsage& zone) { return !zone.in_use; }), 3);
  m_tree.reset();
  std::unique_ptr<File> file;
  ASSERT_TRUE(m_env.open_file("/db/tree", {}, &file).ok());
  const uint64_t zone_bytes = m_options.geometry.zone_bytes;
  ASSERT_TRUE(file->punch_hole(static_cast<uint64_t>(free - zones.begin()) * zone_bytes, zone_bytes).ok());
  open();
  m_env.set_capacity(m_env.allocated_bytes());
  const Status status = flush(32);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(read(), "32");
}

// A reader holds the replaced runs for a while.
TEST_F(TreeSpaceTest, AtRestFewFreeZonesHaveSpace) {
  make();
  for (SequenceNumber number = 1; number <= 100; ++number) {
    ASSERT_TRUE(flush(number).ok());
  }
  auto reader = m_tree->current();
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  const auto free_zones = [this] { return m_tree->statistics().zones - m_tree->statistics().zones_in_use; };
  bool did = true;
  while (did) {
    ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
  }
  const uint64_t held = m_tree->statistics().zones_in_use;
  ASSERT_GT(held, 10u);
  reader.reset();
  EXPECT_GT(free_zones(), 10u);
  ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
  EXPECT_FALSE(did);
  // The tree is smaller than a step of compaction: as much as it has, and two.
  EXPECT_LE(free_zones(), m_tree->statistics().zones_in_use + 2);
  EXPECT_EQ(m_tree->statistics().file_bytes, m_tree->statistics().zones * m_options.geometry.zone_bytes);
}

// The host has room for a few zones more.
class CappedTreeTest : public TreeSpaceTest {
 protected:
  void SetUp() override {
    m_options.runs_per_level = m_options.growth_factor = 2;
    m_options.stitch_threshold_bytes = kNeverStitch;
    make();
  }
  // A run of some ten zones.
  Status flush_large(SequenceNumber number, const std::string& first = "key") {
    MemTable table;
    for (int i = 0; i < 2000; ++i) {
      table.put(number * 10'000 + i, first + std::to_string(1000 + i), std::to_string(number) + std::string(300, 'v'));
    }
    LogPosition position;
    position.sequence = number * 10'000 + 9'999;
    return m_tree->flush(table, position, {});
  }
  void set_room(uint64_t zones) { m_env.set_capacity(m_env.allocated_bytes() + zones * m_options.geometry.zone_bytes); }
  // Two runs become one, and the older copy of the manifest still names the two.
  void compact_two() {
    ASSERT_TRUE(flush_large(1).ok() && flush_large(2).ok() && m_tree->compact_all({}).ok());
    ASSERT_EQ(m_tree->statistics().runs, 1u);
    ASSERT_GT(m_tree->statistics().zones_in_use, 25u);
  }
  std::string read_large() {
    Lookup result = Lookup::absent;
    std::string value;
    const Status status = m_tree->current()->get("key1200", UINT64_MAX, &result, &value);
    return status.ok() ? value.substr(0, value.find('v')) : status.to_string();
  }
  const Status m_full = Status::from_errno(ENOSPC, "a full disk");
};

TEST_F(CappedTreeTest, AFlushThatFailsLeavesTheHostWhatItHad) {
  ASSERT_TRUE(flush_large(1).ok());
  for (uint64_t zones = 0; zones < 8; ++zones) {
    const uint64_t before = m_env.allocated_bytes();
    set_room(zones);
    EXPECT_TRUE(flush_large(2).is_no_space());
    EXPECT_LE(m_env.allocated_bytes(), before) << zones;
    EXPECT_EQ(m_tree->statistics().zones, m_tree->statistics().zones_in_use);
    EXPECT_TRUE(m_tree->failure().ok());
  }
  set_room(20);
  ASSERT_TRUE(flush_large(2).ok());
  open();
  EXPECT_EQ(read_large(), "2");
}

TEST_F(CappedTreeTest, ACompactionThatFailsLeavesTheHostWhatItHad) {
  ASSERT_TRUE(flush_large(1).ok());
  ASSERT_TRUE(flush_large(2).ok());
  bool did = false;
  for (uint64_t zones = 0; zones < 8; ++zones) {
    const uint64_t before = m_env.allocated_bytes();
    set_room(zones);
    EXPECT_TRUE(m_tree->compact_once({}, &did).is_no_space());
    EXPECT_LE(m_env.allocated_bytes(), before) << zones;
    EXPECT_TRUE(m_tree->failure().ok());
  }
  set_room(20);
  ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
  EXPECT_EQ(m_tree->statistics().runs, 1u);
  open();
  EXPECT_EQ(read_large(), "2");
}

TEST_F(CappedTreeTest, AFlushGetsTheSpaceOfRunsThatOnlyTheOlderCopyNames) {
  ASSERT_NO_FATAL_FAILURE(compact_two());
  set_room(0);
  const Status status = flush_large(3);
  EXPECT_TRUE(status.ok()) << status.to_string();
  open();
  EXPECT_EQ(read_large(), "3");
}

// A move is a compaction of one run.
TEST_F(CappedTreeTest, AMoveThatFailsMakesRoomForItsNextAttempt) {
  ASSERT_NO_FATAL_FAILURE(compact_two());
  std::set<uint64_t> zones;
  const std::vector<ZoneUsage> usage = m_tree->zone_usage();
  for (uint64_t zone = 0; zone < usage.size(); ++zone) {
    if (usage[zone].live_bytes > 0) {
      zones.insert(zone);
    }
  }
  set_room(0);
  Tree::Moved moved;
  EXPECT_TRUE(m_tree->move_out_of(zones, 1 << 20, {}, &moved).is_no_space());
  const Status status = m_tree->move_out_of(zones, 1 << 20, {}, &moved);
  EXPECT_TRUE(status.ok() && moved.any) << status.to_string();
  open();
  EXPECT_EQ(read_large(), "2");
}

// Less than an eighth is not worth a checkpoint as long as the host has space.
TEST_F(CappedTreeTest, WhileTheHostIsShortOfSpaceTheOlderCopyIsLetGoOfForLess) {
  m_options.auto_compaction = false;
  open();
  for (SequenceNumber number = 1; number <= 12; ++number) {
    ASSERT_TRUE(flush_large(number, "run" + std::to_string(100 + number)).ok());
  }
  const auto replace_one_run = [this] {
    const std::vector<ZoneUsage> usage = m_tree->zone_usage();
    const auto first =
        std::find_if(usage.begin(), usage.end(), [](const ZoneUsage& zone) { return zone.live_bytes > 0; });
    Tree::Moved moved;
    ASSERT_TRUE(m_tree->move_out_of({static_cast<uint64_t>(first - usage.begin())}, 1, {}, &moved).ok());
    ASSERT_TRUE(moved.any);
  };
  const auto writes = [this](const auto& work) {
    const uint64_t before = m_env.calls(SimCall::write);
    work();
    return m_env.calls(SimCall::write) - before;
  };
  bool did = false;
  const auto let_go = [&] { ASSERT_TRUE(m_tree->let_go_while_short(&did).ok()); };
  const auto at_rest = [&] { ASSERT_TRUE(m_tree->compact_once({}, &did).ok()); };
  ASSERT_NO_FATAL_FAILURE(replace_one_run());
  EXPECT_EQ(writes(let_go), 0u);
  EXPECT_EQ(writes(at_rest), 0u);
  EXPECT_EQ(writes([&] { EXPECT_TRUE(m_tree->spare_space_after(m_full)); }), 1u);
  EXPECT_EQ(writes(let_go), 0u) << "once is enough";
  ASSERT_NO_FATAL_FAILURE(replace_one_run());
  EXPECT_EQ(writes(let_go), 1u);
  EXPECT_TRUE(did);
  ASSERT_NO_FATAL_FAILURE(replace_one_run());
  EXPECT_EQ(writes(at_rest), 1u);
  EXPECT_EQ(writes(at_rest), 0u);
  EXPECT_FALSE(did);
  ASSERT_NO_FATAL_FAILURE(replace_one_run());
  EXPECT_EQ(writes(at_rest), 0u) << "no compaction was due meanwhile: it is over";
}

TEST_F(CappedTreeTest, AFullListIsNoReasonToGiveSpaceBack) {
  ASSERT_NO_FATAL_FAILURE(compact_two());
  const uint64_t before = m_env.allocated_bytes();
  EXPECT_FALSE(m_tree->spare_space_after(Status::make(Status::Code::no_space, "a full list", kListIsFull)));
  EXPECT_EQ(m_env.allocated_bytes(), before);
}

// The manifest lists runs and log segments in the same room.
class FullManifestTest : public TreeSpaceTest {
 protected:
  static constexpr uint64_t kSegments = 400;  // of some 406

  void SetUp() override {
    m_options.geometry.zone_bytes = 16 << 10;
    m_options.runs_per_level = m_options.growth_factor = 16;
    m_options.block_cache_bytes = 0;
    make();
  }
  // Values in log segments of their own.
  Status put(uint64_t first, uint64_t count) {
    MemTable table;
    for (uint64_t i = first; i < first + count; ++i) {
      LogAddress* address = table.new_address();
      *address = {i, 10 + i, 4096};
      table.put_logged(++m_sequence, key(i), std::string(1000, 'v'), address, 8);
    }
    return m_tree->flush(table, {m_sequence, 1, 10'000, 4096, 7}, {});
  }
  Status remove(uint64_t first, uint64_t count) {
    MemTable table;
    for (uint64_t i = first; i < first + count; ++i) {
      table.remove(++m_sequence, key(i));
    }
    return m_tree->flush(table, {m_sequence, 1, 10'000, 4096, 7}, {});
  }
  static std::string key(uint64_t i) { return "key" + std::to_string(1000 + i); }
};

TEST_F(FullManifestTest, CompactionMakesRoomWhateverTheShape) {
  ASSERT_TRUE(put(0, kSegments).ok());
  int refused = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    if (const Status status = remove(i, 1); !status.ok()) {
      ASSERT_TRUE(is_list_full(status)) << status.to_string();
      ++refused;
      bool did = false;
      ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
      ASSERT_TRUE(did);
      ASSERT_TRUE(remove(i, 1).ok()) << "flush " << i;
    }
  }
  EXPECT_GT(refused, 0);
}

// A refused flush has written nothing: it is tried again every few seconds.
TEST_F(FullManifestTest, AFlushThatCannotBeListedWritesNothing) {
  ASSERT_TRUE(put(0, kSegments).ok());
  while (remove(0, 1).ok()) {
  }
  const uint64_t writes = m_env.calls(SimCall::write);
  EXPECT_TRUE(is_list_full(remove(0, 1)));
  EXPECT_EQ(m_env.calls(SimCall::write), writes);
}

// Runs that cannot be compacted are quarantined; others may do.
TEST_F(FullManifestTest, ABlockThatCannotBeReadDoesNotEndTheFlushes) {
  ASSERT_TRUE(put(0, kSegments).ok());
  m_env.set_bad(SimBad::reads, "/db/tree", 0, uint64_t{1} << 30);
  for (uint64_t i = 0; i < 20; ++i) {
    const Status status = remove(i, 1);
    EXPECT_TRUE(status.ok() || is_list_full(status)) << "flush " << i << ": " << status.to_string();
    EXPECT_TRUE(m_tree->failure().ok());
  }
}

TEST_F(FullManifestTest, ItSaysWhatItIsAndGoesOnWhenSegmentsAreGone) {
  ASSERT_TRUE(put(0, kSegments).ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Status status = put(kSegments, 20);
    EXPECT_TRUE(is_list_full(status)) << status.to_string();
    EXPECT_NE(status.message().find("log segments with values"), std::string::npos) << status.to_string();
    EXPECT_TRUE(m_tree->failure().ok());
  }
  ASSERT_TRUE(remove(0, 50).ok());
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  std::set<uint64_t> gone;
  for (uint64_t i = 0; i < 50; ++i) {
    gone.insert(10 + i);
  }
  ASSERT_TRUE(m_tree->forget_segments(gone).ok());
  EXPECT_TRUE(put(kSegments, 20).ok());
}

// Until the manifest has been written, either the old state is there or the new one; and what comes next does not
// take the zones of what may be there.
TEST(TreeSpaceCrashTest, AManifestThatWasWrittenInPartLosesNothing) {
  for (uint64_t n = 1; n < 12; ++n) {
    SimEnv env({.seed = n});
    Options options;
    options.geometry.zone_bytes = 16 << 10;
    options.growth_factor = options.runs_per_level = 2;
    ASSERT_TRUE(env.create_directory("/db").ok());
    ASSERT_TRUE(Tree::create(&env, "/db", options.geometry, Uuid{1, 2, 3}, {}).ok());
    std::unique_ptr<Tree> tree;
    ASSERT_TRUE(Tree::open(&env, "/db", options, &tree).ok());
    env.restart_trace();
    const auto flush = [&](SequenceNumber number) {
      MemTable table;
      for (int i = 0; i < 40; ++i) {
        table.put(number * 100 + i, "key" + std::to_string(100 + i), std::to_string(number) + std::string(300, 'v'));
      }
      LogPosition position;
      position.sequence = number * 100 + 99;
      Status status = tree->flush(table, position, {});
      if (status.ok()) {
        env.mark(number);
      }
      return status;
    };
    ASSERT_TRUE(flush(1).ok());
    env.fail_nth(SimCall::write, n, Status::from_errno(ENOSPC, "injected"), false);
    for (SequenceNumber number = 2; number < 6;) {
      number += flush(number).ok() ? 1 : 0;
    }
    bool did = false;
    ASSERT_TRUE(tree->compact_once({}, &did).ok());
    tree.reset();
    CrashImages images(env.trace(), {.samples = 32});
    for (uint64_t sample = 0; sample < 150; ++sample) {
      const CrashState state = images.sample(sample);
      const auto crashed = images.materialize(state);
      const auto marks = images.marks(state);
      const uint64_t acknowledged = marks.empty() ? 0 : marks.back().id;
      std::unique_ptr<Tree> again;
      const Status status = Tree::open(crashed.get(), "/db", options, &again);
      ASSERT_TRUE(status.ok()) << status.to_string() << " " << state.to_string();
      ASSERT_GE(again->newest_log_position().sequence, acknowledged * 100) << state.to_string();
      std::vector<std::string> findings;
      again->verify(&findings);
      ASSERT_TRUE(findings.empty()) << findings.front() << " " << state.to_string();
    }
  }
}

}  // namespace
}  // namespace vtkv
