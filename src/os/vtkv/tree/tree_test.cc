// SPDX-License-Identifier: LGPL-2.1-or-later
// The tree as a whole, against a model that keeps every version of every key.

#include "vtkv/tree/tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class TreeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(m_env->create_directory(m_directory).ok());
    m_options.geometry.zone_bytes = 64 << 10;
    m_options.geometry.log_segment_bytes = 64 << 10;
    ASSERT_TRUE(create().ok());
    reopen();
  }
  Status create() { return Tree::create(m_env, m_directory, m_options.geometry, Uuid{1, 2, 3}, {}); }
  Status open() {
    m_tree.reset();
    return Tree::open(m_env, m_directory, m_options, &m_tree);
  }
  void reopen() {
    const Status status = open();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  LogPosition position(SequenceNumber sequence) { return {sequence, 1, 1, sequence * 4096, 7}; }
  void flush(const MemTable& table, const std::vector<SequenceNumber>& snapshots = {}) {
    const Status status = m_tree->flush(table, position(table.last_sequence()), snapshots);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  std::string read(std::string_view key, SequenceNumber at_most = UINT64_MAX) {
    Lookup result;
    std::string value;
    const Status status = m_tree->current()->get(key, at_most, &result, &value);
    if (!status.ok()) {
      return "(" + status.to_string() + ")";
    }
    return result == Lookup::found ? value : result == Lookup::removed ? "(removed)" : "(absent)";
  }
  void compact_all() {
    const Status status = m_tree->compact_all({});
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void expect_sound() {
    std::vector<std::string> findings;
    m_tree->verify(&findings);
    EXPECT_EQ(findings, std::vector<std::string>());
  }

  SimEnv m_sim{{.seed = 1, .record = false}};
  Env* m_env = &m_sim;
  std::string m_directory = "/db";
  Options m_options;
  std::unique_ptr<Tree> m_tree;
};

TEST_F(TreeTest, StartsEmptyAtTheGivenPosition) {
  EXPECT_EQ(read("a"), "(absent)");
  EXPECT_EQ(m_tree->uuid(), (Uuid{1, 2, 3}));
  EXPECT_EQ(m_tree->geometry().zone_bytes, 64u << 10);
  EXPECT_EQ(m_tree->newest_log_position().sequence, 0u);
  EXPECT_EQ(m_tree->statistics().runs, 0u);
}

TEST_F(TreeTest, WhatWasFlushedIsThereAfterAReopen) {
  MemTable table;
  table.put(1, "a", "one");
  table.put(2, "b", "");
  table.put(3, "", "empty key");
  flush(table);
  reopen();
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(read("b"), "");
  EXPECT_EQ(read(""), "empty key");
  EXPECT_EQ(read("c"), "(absent)");
  EXPECT_EQ(m_tree->newest_log_position().sequence, 3u);
  EXPECT_EQ(m_tree->newest_log_position().end_offset, 3u * 4096);
  EXPECT_EQ(m_tree->newest_log_position().header_checksum, 7u);
}

TEST_F(TreeTest, TheOlderManifestCopyHoldsTheLogBackByOneCheckpoint) {
  MemTable empty;
  ASSERT_TRUE(m_tree->flush(empty, position(10), {}).ok());
  ASSERT_TRUE(m_tree->flush(empty, position(20), {}).ok());
  EXPECT_EQ(m_tree->newest_log_position().sequence, 20u);
  EXPECT_EQ(m_tree->oldest_log_position().sequence, 10u);
  reopen();
  EXPECT_EQ(m_tree->newest_log_position().sequence, 20u);
  EXPECT_EQ(m_tree->oldest_log_position().sequence, 10u);
}

TEST_F(TreeTest, ANewerRunHidesAnOlderOne) {
  MemTable first, second;
  first.put(1, "a", "old");
  first.put(2, "b", "old");
  first.put(3, "c", "old");
  second.put(4, "a", "new");
  second.remove(5, "b");
  second.remove_range(6, "c", "d");
  flush(first);
  flush(second);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(read("a"), "new");
    EXPECT_EQ(read("b"), "(removed)");
    EXPECT_EQ(read("c"), "(removed)");
    EXPECT_EQ(read("a", 3), "old");
    EXPECT_EQ(read("b", 4), "old");
    EXPECT_EQ(read("c", 5), "old");
    reopen();
  }
}

TEST_F(TreeTest, ACompactionOfEverythingLeavesNoTombstones) {
  MemTable first, second;
  first.put(1, "a", "old");
  first.put(2, "b", "old");
  second.remove(3, "a");
  second.remove_range(4, "b", "z");
  flush(first);
  flush(second);
  compact_all();
  EXPECT_EQ(read("a"), "(absent)");
  EXPECT_EQ(read("b"), "(absent)");
  EXPECT_EQ(m_tree->statistics().runs, 0u);
}

TEST_F(TreeTest, ShortLivedKeysNeverReachTheTree) {
  MemTable table;
  for (SequenceNumber s = 1; s <= 2000; s += 2) {
    table.put(s, "log" + std::to_string(s), "entry");
    table.remove(s + 1, "log" + std::to_string(s));
  }
  flush(table);
  EXPECT_EQ(m_tree->statistics().runs, 0u);
  EXPECT_EQ(m_tree->newest_log_position().sequence, 2000u);
}

TEST_F(TreeTest, TakesValuesAndKeysLargerThanAZone) {
  const std::string big(300000, 'v'), long_key(200000, 'k');
  MemTable table;
  table.put(1, "a", "small");
  table.put(2, "b", big);
  table.put(3, long_key, "long");
  table.put(4, "z", "small");
  flush(table);
  reopen();
  EXPECT_EQ(read("b"), big);
  EXPECT_EQ(read(long_key), "long");
  EXPECT_EQ(read("z"), "small");
  expect_sound();
}

TEST_F(TreeTest, AVersionInUseOutlivesCompactions) {
  MemTable first;
  for (SequenceNumber s = 1; s <= 1000; ++s) {
    first.put(s, "k" + std::to_string(s), "first");
  }
  flush(first);
  const auto held = m_tree->current();
  for (SequenceNumber round = 1; round <= 12; ++round) {
    MemTable next;
    for (SequenceNumber s = 1; s <= 1000; ++s) {
      next.put(round * 1000 + s, "k" + std::to_string(s), "round" + std::to_string(round));
    }
    flush(next);
    compact_all();
  }
  m_tree->cache()->resize(0);
  Lookup result;
  std::string value;
  for (SequenceNumber s = 1; s <= 1000; ++s) {
    ASSERT_TRUE(held->get("k" + std::to_string(s), 1000, &result, &value).ok());
    EXPECT_EQ(value, "first");
  }
}

TEST_F(TreeTest, SpaceIsReused) {
  uint64_t early = 0;
  for (SequenceNumber round = 0; round < 60; ++round) {
    MemTable next;
    for (SequenceNumber s = 1; s <= 500; ++s) {
      next.put(round * 1000 + s, "k" + std::to_string(s), std::string(100, 'x'));
    }
    flush(next);
    compact_all();
    if (round == 9) {
      early = m_tree->statistics().file_bytes;
    }
  }
  EXPECT_LE(m_tree->statistics().file_bytes, early + (64 << 10));
}

TEST_F(TreeTest, SpaceGoesBackToTheHostWhenEverythingIsRemoved) {
  MemTable full, clear, empty;
  for (SequenceNumber s = 1; s <= 20000; ++s) {
    full.put(s, "k" + std::to_string(s), std::string(100, 'x'));
  }
  flush(full);
  const uint64_t before = m_sim.allocated_bytes();
  clear.remove_range(20001, "", "z");
  flush(clear);
  compact_all();
  EXPECT_EQ(m_tree->statistics().runs, 0u);
  ASSERT_TRUE(m_tree->flush(empty, position(20002), {}).ok());  // the older copy lets go
  EXPECT_LT(m_sim.allocated_bytes(), before / 2);
}

TEST_F(TreeTest, CompactionsKeepTheNumberOfRunsLow) {
  SequenceNumber s = 0;
  uint32_t runs_max = 0;
  for (int round = 0; round < 100; ++round) {
    MemTable next;
    for (int i = 0; i < 20; ++i) {
      ++s;
      next.put(s, "k" + std::to_string(s * 7919 % 3000), std::to_string(s));
    }
    flush(next);
    for (bool did = true; did;) {
      ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
    }
    runs_max = std::max(runs_max, m_tree->statistics().runs);
  }
  EXPECT_LE(runs_max, 12u);
  EXPECT_GT(m_tree->statistics().compactions, 10u);
  expect_sound();
}

TEST_F(TreeTest, AFullManifestRefusesAFlushUntilCompactionHasMadeRoom) {
  for (SequenceNumber s = 1; s <= 2000; ++s) {
    MemTable next;
    next.put(s, "k" + std::to_string(s), "v");
    Status status = m_tree->flush(next, position(s), {});
    for (bool did = true; is_list_full(status) && did;) {
      ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
      status = m_tree->flush(next, position(s), {});
    }
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_EQ(read("k1"), "v");
  EXPECT_EQ(read("k2000"), "v");
  EXPECT_LT(m_tree->statistics().runs, 2000u);
}

TEST_F(TreeTest, WithoutCompactionRunsStay) {
  m_options.auto_compaction = false;
  reopen();
  for (SequenceNumber s = 1; s <= 50; ++s) {
    MemTable next;
    next.put(s, "k" + std::to_string(s), "v");
    flush(next);
    bool did = true;
    ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
    EXPECT_FALSE(did);
  }
  EXPECT_EQ(m_tree->statistics().runs, 50u);
  EXPECT_GT(m_tree->statistics().debt_bytes, 0u);
  m_options.auto_compaction = true;
  reopen();
  for (bool did = true; did;) {
    ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
  }
  EXPECT_LT(m_tree->statistics().runs, 10u);
  EXPECT_EQ(m_tree->statistics().debt_bytes, 0u);
}

TEST_F(TreeTest, TheThresholdCanBeChangedAtRunTime) {
  SequenceNumber s = 0;
  const auto flush_keys = [&](int first) {
    MemTable next;
    for (int i = first; i < first + 500; ++i) {
      next.put(++s, "k" + std::to_string(10000 + i), std::string(100, 'v'));
    }
    flush(next);
  };
  m_tree->set_stitch_threshold(kNeverStitch);
  flush_keys(0);
  flush_keys(500);
  compact_all();
  EXPECT_EQ(m_tree->statistics().stitched_bytes, 0u);
  m_tree->set_stitch_threshold(0);
  const uint64_t copied = m_tree->statistics().compaction_bytes;
  flush_keys(1000);
  compact_all();
  EXPECT_GT(m_tree->statistics().stitched_bytes, 100'000u);
  EXPECT_LT(m_tree->statistics().compaction_bytes, copied + 16'000);  // a filter and a descriptor
  EXPECT_EQ(read("k10700"), std::string(100, 'v'));
  expect_sound();
}

TEST_F(TreeTest, ZonesCanBeEmptied) {
  SequenceNumber s = 0;
  for (int round = 0; round < 3; ++round) {
    MemTable next;
    for (int i = 0; i < 2000; ++i) {
      next.put(++s, "k" + std::to_string(10000 + i * 3 + round), std::string(100, 'v'));
    }
    flush(next);
  }
  const std::vector<ZoneUsage> before = m_tree->zone_usage();
  uint64_t entries = 0, live = 0;
  for (const ZoneUsage& zone : before) {
    entries += zone.entries;
    live += zone.live_bytes;
    EXPECT_LE(zone.live_bytes, 64u << 10);
    EXPECT_EQ(zone.live_bytes > 0, zone.fragments > 0);
    EXPECT_TRUE(zone.in_use || zone.live_bytes == 0);
  }
  EXPECT_NEAR(static_cast<double>(entries), 6000, 6000 * 0.02);  // cut at zone borders by bytes
  EXPECT_EQ(live, m_tree->statistics().live_bytes);
  const std::set<uint64_t> zones{1, 2, before.size() - 2};
  for (Tree::Moved moved{.any = true}; moved.any;) {
    ASSERT_TRUE(m_tree->move_out_of(zones, UINT64_MAX, {}, &moved).ok());
    const std::vector<ZoneUsage> now = m_tree->zone_usage();
    if (moved.any) {
      EXPECT_GT(m_tree->statistics().stitched_bytes, 0u);
    } else {
      for (const uint64_t zone : zones) {
        EXPECT_EQ(now[zone].live_bytes, 0u) << zone;
      }
    }
  }
  MemTable empty;  // the older copy lets go
  ASSERT_TRUE(m_tree->flush(empty, position(s), {}).ok());
  for (const uint64_t zone : zones) {
    EXPECT_FALSE(m_tree->zone_usage()[zone].in_use) << zone;
  }
  for (int i = 0; i < 6000; ++i) {
    ASSERT_EQ(read("k" + std::to_string(10000 + i)), std::string(100, 'v'));
  }
  expect_sound();
}

// The top of the index is what always stays in memory: it must not grow with the keys, but with the spans.
TEST_F(TreeTest, TheTopOfTheIndexIsSmall) {
  m_options.geometry.zone_bytes = 8 << 20;
  m_directory = "/large";
  ASSERT_TRUE(m_env->create_directory(m_directory).ok());
  ASSERT_TRUE(create().ok());
  reopen();
  constexpr SequenceNumber kKeys = 200'000;
  MemTable table;
  for (SequenceNumber s = 1; s <= kKeys; ++s) {
    char key[32];
    std::snprintf(key, sizeof(key), "%016llu", static_cast<unsigned long long>(s));
    table.put(s, key, std::string(64, 'v'));
  }
  flush(table);
  EXPECT_LE(m_tree->statistics().index_bytes, kKeys / 10);  // a tenth of a byte per key
  EXPECT_GT(m_tree->statistics().index_bytes, 0u);
}

TEST_F(TreeTest, AStoppedTreeDoesNotCompact) {
  for (SequenceNumber s = 1; s <= 5; ++s) {
    MemTable next;
    next.put(s, "k" + std::to_string(s), "v");
    flush(next);
  }
  m_tree->stop();
  EXPECT_EQ(m_tree->compact_all({}).code(), Status::Code::busy);
  EXPECT_EQ(read("k1"), "v");
}

TEST_F(TreeTest, WorksOnTheHostToo) {
  char name[] = "vtkv_tree_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  m_tree.reset();
  m_env = posix_env();
  m_directory = std::filesystem::absolute(name);
  ASSERT_TRUE(create().ok());
  reopen();
  for (SequenceNumber round = 0; round < 3; ++round) {
    MemTable table;
    for (SequenceNumber s = 1; s <= 3000; ++s) {
      table.put(round * 3000 + s, "k" + std::to_string(s), std::to_string(round * 3000 + s));
    }
    flush(table);
  }
  compact_all();
  reopen();
  for (SequenceNumber s = 1; s <= 3000; ++s) {
    ASSERT_EQ(read("k" + std::to_string(s)), std::to_string(6000 + s));
  }
  expect_sound();
  m_tree.reset();
  std::filesystem::remove_all(m_directory);
}

// Every version of every key, by the definition.
class Model {
 public:
  struct Tombstone {
    SequenceNumber sequence;
    std::string begin, end;
  };
  std::map<std::string, std::map<SequenceNumber, std::optional<std::string>>> versions;
  std::vector<Tombstone> tombstones;

  std::optional<std::string> get(const std::string& key, SequenceNumber at_most) const {
    SequenceNumber newest = 0;
    std::optional<std::string> value;
    if (const auto found = versions.find(key); found != versions.end()) {
      for (const auto& [sequence, state] : found->second) {
        if (sequence <= at_most) {
          newest = sequence;
          value = state;
        }
      }
    }
    for (const Tombstone& tombstone : tombstones) {
      if (tombstone.begin <= key && key < tombstone.end && tombstone.sequence <= at_most &&
          tombstone.sequence > newest) {
        return std::nullopt;
      }
    }
    return value;
  }
};

class TreeModelTest : public TreeTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    constexpr uint64_t kThresholds[] = {0, 8 << 10, kNeverStitch};
    m_options.stitch_threshold_bytes = kThresholds[GetParam() % 3];
    m_options.purge_tombstones_min = GetParam() % 2;
    // The measure of steps and parts: with small ones, the last level has many.
    m_options.memtable_bytes = GetParam() % 4 < 2 ? 4 << 10 : 32 << 20;
    TreeTest::SetUp();
  }
  // Close to those of the same memtable, so that there is something to stitch.
  std::string key() { return "key" + std::to_string(100 + (m_window + m_random() % 60) % 300); }

  void fill(MemTable* table, int operations) {
    m_window = m_random() % 300;
    const bool cleans_up = m_random() % 3 == 0;
    const uint64_t rarity = m_options.purge_tombstones_min > 0 ? 200 : 4;  // of range tombstones: they keep purges away
    for (; operations > 0; --operations) {
      ++m_sequence;
      const std::string k = key();
      switch (cleans_up && m_random() % 4 != 0 ? 0 : m_random() % 10) {
        case 0:
        case 1:
          table->remove(m_sequence, k);
          m_model.versions[k][m_sequence] = std::nullopt;
          break;
        case 2: {
          const std::string end = key();
          if (k < end && m_random() % rarity == 0) {
            table->remove_range(m_sequence, k, end);
            m_model.tombstones.push_back({m_sequence, k, end});
            break;
          }
          [[fallthrough]];
        }
        default: {
          std::string value = std::to_string(m_sequence) + std::string(m_random() % 200, 'x');
          table->put(m_sequence, k, value);
          m_model.versions[k][m_sequence] = value;
        }
      }
    }
  }

  void check(SequenceNumber at_most) {
    const auto version = m_tree->current();
    std::map<std::string, std::string> expected;
    for (int i = 0; i < 300; ++i) {
      const std::string k = "key" + std::to_string(100 + i);
      const auto want = m_model.get(k, at_most);
      Lookup result;
      std::string value;
      const Status status = version->get(k, at_most, &result, &value);
      ASSERT_TRUE(status.ok()) << status.to_string();
      ASSERT_EQ(result == Lookup::found, want.has_value()) << k << " at " << at_most;
      if (want) {
        ASSERT_EQ(value, *want) << k << " at " << at_most;
        expected[k] = *want;
      }
    }
    ASSERT_EQ(scan(*version, at_most, false), expected);
    ASSERT_EQ(scan(*version, at_most, true), expected);
  }

  // Merges the runs' iterators by brute force.
  std::map<std::string, std::string> scan(const Version& version, SequenceNumber at_most, bool backward) {
    std::vector<std::unique_ptr<EntryIterator>> iterators;
    std::vector<std::shared_ptr<const RangeTombstones>> tombstones;
    version.new_iterators("", "", &iterators, &tombstones);
    std::map<std::string, std::pair<SequenceNumber, std::optional<std::string>>> newest;
    for (const auto& iterator : iterators) {
      for (backward ? iterator->seek_to_last() : iterator->seek_to_first(); iterator->valid();
           backward ? iterator->previous() : iterator->next()) {
        const Entry& entry = iterator->entry();
        auto& state = newest[std::string(entry.key)];
        if (entry.sequence <= at_most && entry.sequence > state.first) {
          state = {entry.sequence,
                   entry.type == EntryType::tombstone ? std::nullopt : std::optional<std::string>(entry.value)};
        }
      }
      EXPECT_TRUE(iterator->status().ok());
    }
    std::map<std::string, std::string> result;
    for (const auto& [k, state] : newest) {
      SequenceNumber covering = 0;
      for (const auto& tombstone : tombstones) {
        covering = std::max(covering, tombstone ? tombstone->covering(k, at_most) : 0);
      }
      if (state.second && covering < state.first) {
        result[k] = *state.second;
      }
    }
    return result;
  }

  std::mt19937_64 m_random{static_cast<uint64_t>(GetParam())};
  SequenceNumber m_sequence = 0;
  uint64_t m_window = 0;
  Model m_model;
};

TEST_P(TreeModelTest, AgreesWithTheModelThroughFlushesCompactionsAndReopens) {
  std::set<SequenceNumber> snapshots;
  uint64_t stitched = 0, purges = 0;
  for (int round = 0; round < 40; ++round) {
    MemTable table;
    fill(&table, static_cast<int>(m_random() % 200));
    if (m_random() % 3 == 0) {
      snapshots.insert(m_sequence);
      fill(&table, static_cast<int>(m_random() % 100));
    }
    if (!snapshots.empty() && m_random() % 2 == 0) {
      snapshots.erase(snapshots.begin());
    }
    const std::vector<SequenceNumber> held(snapshots.begin(), snapshots.end());
    ASSERT_TRUE(m_tree->flush(table, position(m_sequence), held).ok());
    for (bool did = m_random() % 4 == 0; did;) {
      ASSERT_TRUE(m_tree->compact_once(held, &did).ok());
    }
    if (m_random() % 12 == 0) {
      ASSERT_TRUE(m_tree->compact_all(held).ok());
    }
    if (m_random() % 6 == 0) {
      stitched += m_tree->statistics().stitched_bytes;
      purges += m_tree->statistics().purges;
      reopen();
    }
    check(m_sequence);
    for (const SequenceNumber snapshot : held) {
      check(snapshot);
    }
    if (HasFatalFailure()) {
      return;
    }
  }
  expect_sound();
  stitched += m_tree->statistics().stitched_bytes;
  // Parts that go into the last level as a whole are stitched whatever the threshold, and so are rests.
  const bool has_one_part = m_options.memtable_bytes > 1 << 20;
  if (m_options.stitch_threshold_bytes == kNeverStitch && m_options.purge_tombstones_min == 0 && has_one_part) {
    EXPECT_EQ(stitched, 0u);
  }
  purges += m_tree->statistics().purges;
  if (m_options.purge_tombstones_min == 0) {
    EXPECT_EQ(purges, 0u);
  } else if (GetParam() % 4 == 3) {  // the others may have held a snapshot all the time
    EXPECT_GT(purges, 0u);
  }
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  check(m_sequence);
  expect_sound();
}

INSTANTIATE_TEST_SUITE_P(Seeds, TreeModelTest, testing::Range(1, 13));

}  // namespace
}  // namespace vtkv
