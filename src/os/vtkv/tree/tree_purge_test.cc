// SPDX-License-Identifier: LGPL-2.1-or-later
// Key ranges of tombstones, and what compactions make of them by themselves.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>

#include "vtkv/testing/tree_fixture.h"
#include "vtkv/tree/defragmenter.h"

namespace vtkv {
namespace {

constexpr int kKeys = 20000;
constexpr int kMiddle = 8000, kEnd = 12000;

std::string key_of(int number) { return "key" + std::to_string(100000 + number); }

class TreePurgeTest : public TreeFixture {
 protected:
  void SetUp() override {
    m_options.geometry.zone_bytes = 1 << 20;
    m_options.runs_per_level = m_options.growth_factor = 8;  // nothing else is due
    make();
    flush_each(0, kKeys, 1,
               [this](MemTable* table, const std::string& key) { table->put(m_sequence, key, std::string(100, 'v')); });
  }
  // As SetUp() left it.
  void remake() {
    m_tree.reset();
    m_sequence = 0;
    for (const char* name : {"/db/manifest", "/db/tree"}) {
      ASSERT_TRUE(m_env.remove_file(name).ok()) << name;
    }
    SetUp();
  }
  void flush(const MemTable& table) {
    const Status status = m_tree->flush(table, {m_sequence, 1, 1, m_sequence * 4096, 7}, m_snapshots);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  // One memtable with what `change` makes of every `step`-th key in [first, end).
  void flush_each(int first, int end, int step, const std::function<void(MemTable*, const std::string&)>& change) {
    MemTable table;
    for (int i = first; i < end; i += step) {
      ++m_sequence;
      change(&table, key_of(i));
    }
    flush(table);
  }
  void remove_each(int first, int end, int step = 1) {
    flush_each(first, end, step, [this](MemTable* table, const std::string& key) { table->remove(m_sequence, key); });
  }
  // Until nothing is due.
  void compact() {
    for (bool did = true; did;) {
      ASSERT_TRUE(m_tree->compact_once(m_snapshots, &did).ok());
      ASSERT_LT(m_tree->statistics().compactions + m_tree->statistics().purges, 100u) << "it does not end";
    }
    std::vector<std::string> findings;
    m_tree->verify(&findings);
    EXPECT_EQ(findings, std::vector<std::string>());
  }
  bool holds(int number, SequenceNumber at_most = UINT64_MAX) {
    Lookup result;
    std::string value;
    EXPECT_TRUE(m_tree->current()->get(key_of(number), at_most, &result, &value).ok());
    return result == Lookup::found;
  }
  void expect_keys(const std::function<bool(int)>& wanted, SequenceNumber at_most = UINT64_MAX) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(holds(i, at_most), wanted(i)) << key_of(i);
    }
  }

  std::vector<SequenceNumber> m_snapshots;
};

TEST_F(TreePurgeTest, KeysRemovedOneByOneLeaveNothingBehind) {
  remove_each(kMiddle, kEnd);
  compact();
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
  EXPECT_GE(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd; };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, WhatLiesOutsideTheKeyRangeIsNotWritten) {
  const uint64_t bytes = m_tree->statistics().live_bytes;
  remove_each(kMiddle, kEnd);
  compact();
  EXPECT_LT(m_tree->statistics().compaction_bytes, bytes / 50);
}

TEST_F(TreePurgeTest, TombstonesAmongMuchElseWait) {
  remove_each(0, kKeys, 40);
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int i) { return i % 40 != 0; });
}

// As a compaction of the flushes that removed a key range leaves them: in one slice with what was changed here and
// there around it.
TEST_F(TreePurgeTest, TombstonesBesideOtherChangesGo) {
  flush_each(0, kKeys, 1, [this](MemTable* table, const std::string& key) {
    if (key >= key_of(kMiddle) && key < key_of(kEnd)) {
      table->remove(m_sequence, key);
    } else if (m_sequence % 5 == 0) {
      table->put(m_sequence, key, "changed");
    }
  });
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd; };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, WhatWasRewrittenInBetweenSurvives) {
  remove_each(kMiddle, kEnd);
  flush_each(kMiddle, kEnd, 10,
             [this](MemTable* table, const std::string& key) { table->put(m_sequence, key, "again"); });
  remove_each(kMiddle, kEnd, 20);
  compact();
  EXPECT_GE(m_tree->statistics().purges, 1u);
  const auto wanted = [](int i) { return i < kMiddle || i >= kEnd || (i % 10 == 0 && i % 20 != 0); };
  expect_keys(wanted);
  open();
  expect_keys(wanted);
}

TEST_F(TreePurgeTest, ASnapshotKeepsWhatItSeesAndThePurgeWaits) {
  m_snapshots = {m_sequence};
  remove_each(kMiddle, kEnd);
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int) { return true; }, m_snapshots[0]);
  m_snapshots.clear();
  compact();
  EXPECT_GE(m_tree->statistics().purges, 1u);
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
}

// A range tombstone that came to lie in front of an entry that it does not hide would hide it.
TEST_F(TreePurgeTest, ARangeTombstoneHidesOnlyWhatIsOlder) {
  MemTable table;
  m_sequence += 1;
  table.remove_range(m_sequence, key_of(kMiddle), key_of(kMiddle + 100));
  flush(table);
  flush_each(kMiddle, kEnd, 10,
             [this](MemTable* newer, const std::string& key) { newer->put(m_sequence, key, "again"); });
  remove_each(kMiddle, kEnd, 20);
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  expect_keys([](int i) {
    return i < kMiddle || i >= kEnd || (i % 10 == 0 && i % 20 != 0) || (i >= kMiddle + 100 && i % 20 != 0);
  });
}

// Five runs that hold other keys are between the tombstones and what these hide.
TEST_F(TreePurgeTest, RunsWithoutKeysOfTheRangeStayAsTheyAre) {
  for (int run = 0; run < 5; ++run) {
    flush_each(run * 100, run * 100 + 100, 1,
               [this](MemTable* table, const std::string& key) { table->put(m_sequence, key, "changed"); });
  }
  remove_each(kMiddle, kEnd);
  const TreeStatistics before = m_tree->statistics();
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 1u);
  // Of the oldest run: on either side a descriptor, and a block with its index.
  EXPECT_LE(m_tree->statistics().compaction_bytes - before.compaction_bytes, 6u * 4096);
  expect_keys([](int i) { return i < kMiddle || i >= kEnd; });
}

// Of the newer runs as well.
TEST_F(TreePurgeTest, WhatIsLeftInTheKeyRangeStaysInItsRunAndNoFilterIsWritten) {
  constexpr int kMany = 100'000;
  flush_each(kKeys, kMany, 1, [this](MemTable* table, const std::string& key) { table->put(m_sequence, key, "v"); });
  ASSERT_TRUE(m_tree->compact_all(m_snapshots).ok());
  flush_each(kMiddle, kMiddle + 400, 10,
             [this](MemTable* table, const std::string& key) { table->put(m_sequence, key, "again"); });
  flush_each(kMiddle, kMiddle + 400, 1, [this](MemTable* table, const std::string& key) {
    if (key.back() != '0') {
      table->remove(m_sequence, key);
    }
  });
  const TreeStatistics before = m_tree->statistics();
  compact();
  EXPECT_EQ(m_tree->statistics().purges, 1u);
  // The tombstones begin behind the first key, which has both versions.
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kMany - 360 + 1});
  EXPECT_EQ(m_tree->statistics().runs, 2u);
  EXPECT_LT(m_tree->statistics().compaction_bytes - before.compaction_bytes, before.filter_bytes / 3);
  expect_keys([](int i) { return i < kMiddle || i >= kMiddle + 400 || i % 10 == 0; });
}

TEST_F(TreePurgeTest, ARunThatLosesMostKeysGetsASmallerFilter) {
  const uint64_t before = m_tree->statistics().filter_bytes;
  remove_each(1000, kKeys);
  compact();
  EXPECT_EQ(m_tree->statistics().entries, 1000u);
  EXPECT_LT(m_tree->statistics().filter_bytes, before / 4);
  const auto wanted = [](int i) { return i < 1000; };
  expect_keys(wanted);
  open();
  EXPECT_LT(m_tree->statistics().filter_bytes, before / 4);
  expect_keys(wanted);
}

// Only a new filter needs what lies outside the key range: the last that a purge reads.
TEST_F(TreePurgeTest, WhatCannotBeReadElsewhereCostsOnlyTheNewFilter) {
  const uint64_t filter_bytes = m_tree->statistics().filter_bytes;
  const auto purge = [this] {
    bool did = false;
    remove_each(1000, kKeys);
    const Status status = m_tree->compact_once(m_snapshots, &did);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(m_tree->statistics().purges, 1u);
  };
  open();  // nothing is cached
  const uint64_t before = m_env.calls(SimCall::read);
  purge();
  const uint64_t reads = m_env.calls(SimCall::read) - before;

  remake();
  open();
  m_env.fail_nth(SimCall::read, reads, Status::from_errno(EIO, "bad block"), true);
  purge();
  m_env.clear_faults();
  EXPECT_GT(m_tree->statistics().filter_bytes, filter_bytes / 2);
  expect_keys([](int i) { return i < 1000; });
}

// Each write of a purge may fail, and each may be the one that finds no space. The last ones are those of the new
// filter, without which the purge is done.
TEST_F(TreePurgeTest, AFailedWriteCostsNoEntries) {
  const uint64_t filter_bytes = m_tree->statistics().filter_bytes;
  const auto wanted = [](int i) { return i < 1000; };
  for (const Status& error : {Status::from_errno(EIO, "bad block"), Status::from_errno(ENOSPC, "full")}) {
    uint64_t purges_with_old_filter = 0;
    bool failed = true;
    for (uint64_t nth = 1; failed; ++nth) {
      SCOPED_TRACE(error.to_string() + ", write " + std::to_string(nth));
      remake();
      remove_each(1000, kKeys);
      const uint64_t before = m_env.calls(SimCall::write);
      m_env.fail_nth(SimCall::write, nth, error, false);
      bool did = false;
      const Status status = m_tree->compact_once(m_snapshots, &did);
      failed = m_env.calls(SimCall::write) - before >= nth;
      m_env.clear_faults();
      EXPECT_TRUE(failed || did) << status.to_string();
      expect_keys(wanted);
      purges_with_old_filter += failed && did && m_tree->statistics().filter_bytes > filter_bytes / 2 ? 1 : 0;
      open();
      expect_keys(wanted);
      compact();
      open();
      expect_keys(wanted);
      ASSERT_LT(nth, 100u);
    }
    EXPECT_GE(purges_with_old_filter, 2u);  // filter and descriptor
  }
}

// Random histories, read at every snapshot before and after.
TEST_F(TreePurgeTest, NoReaderNoticesAPurge) {
  constexpr uint64_t kFew = 300;
  uint64_t purges = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    SimEnv env({.record = false});
    Options options = m_options;
    options.geometry.zone_bytes = 64 << 10;
    options.purge_tombstones_min = 3;
    ASSERT_TRUE(env.create_directory("/db").ok());
    ASSERT_TRUE(Tree::create(&env, "/db", options.geometry, Uuid{1, 2, 3}, {}).ok());
    std::unique_ptr<Tree> tree;
    ASSERT_TRUE(Tree::open(&env, "/db", options, &tree).ok());
    std::map<std::string, std::string> now;
    std::vector<SequenceNumber> snapshots;
    std::vector<std::map<std::string, std::string>> seen;  // by each
    SequenceNumber sequence = 0;
    for (int round = 0; round < 7; ++round) {
      MemTable table;
      const uint64_t first = random() % kFew, count = random() % kFew;
      const bool removes = random() % 2;
      for (uint64_t i = first; i < std::min(first + count, kFew); ++i) {
        const std::string key = key_of(static_cast<int>(i));
        if (random() % 8 == 0 ? !removes : removes) {
          table.remove(++sequence, key);
          now.erase(key);
        } else if (random() % 3 > 0) {
          ++sequence;
          now[key] = std::to_string(sequence) + std::string(random() % 200, 'v');
          table.put(sequence, key, now[key]);
        }
        if (random() % 400 == 0) {
          snapshots.push_back(sequence);
          seen.push_back(now);
        }
      }
      ASSERT_TRUE(tree->flush(table, {sequence, 1, 1, sequence * 4096, 7}, snapshots).ok());
    }
    const auto expect_same = [&](const std::map<std::string, std::string>& wanted, SequenceNumber at_most) {
      for (uint64_t i = 0; i < kFew; ++i) {
        const std::string key = key_of(static_cast<int>(i));
        Lookup result = Lookup::absent;
        std::string value;
        ASSERT_TRUE(tree->current()->get(key, at_most, &result, &value).ok());
        const auto found = wanted.find(key);
        ASSERT_EQ(result == Lookup::found, found != wanted.end()) << key << " at " << at_most << ", seed " << seed;
        ASSERT_TRUE(found == wanted.end() || value == found->second) << key << ", seed " << seed;
      }
    };
    while (true) {
      bool did = true;
      while (did) {
        ASSERT_TRUE(tree->compact_once(snapshots, &did).ok());
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(now, UINT64_MAX));
      for (size_t i = 0; i < snapshots.size(); ++i) {
        ASSERT_NO_FATAL_FAILURE(expect_same(seen[i], snapshots[i]));
      }
      std::vector<std::string> findings;
      tree->verify(&findings);
      ASSERT_EQ(findings, std::vector<std::string>()) << seed;
      if (snapshots.empty()) {
        break;
      }
      snapshots.erase(snapshots.begin());
      seen.erase(seen.begin());
    }
    purges += tree->statistics().purges;
  }
  EXPECT_GT(purges, 30u);
}

TEST_F(TreePurgeTest, TheOldestRunAloneIsPurgedToo) {
  m_snapshots = {m_sequence};
  remove_each(kMiddle, kEnd);
  ASSERT_TRUE(m_tree->compact_all(m_snapshots).ok());
  ASSERT_GE(m_tree->statistics().entries, uint64_t{kKeys + kEnd - kMiddle});
  m_snapshots.clear();
  compact();
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kKeys - (kEnd - kMiddle)});
  expect_keys([](int i) { return i < kMiddle || i >= kEnd; });
}

// A run whose descriptor is large: with keys of a KiB and small zones it has many slices with long keys.
class LargeDescriptorTest : public TreeFixture {
 protected:
  static constexpr int kLongKeys = 10'000;

  void SetUp() override {
    m_options.runs_per_level = m_options.growth_factor = 8;
    m_options.stitch_threshold_bytes = 0;
    make();
    put_each(0, kLongKeys);
    ASSERT_GT(m_tree->statistics().descriptor_bytes, 200u << 10);
  }
  static std::string long_key(int i) { return key_of(i) + std::string(1000, 'k'); }
  void put_each(int first, int count) {
    MemTable table;
    for (int i = first; i < first + count; ++i) {
      table.put(++m_sequence, long_key(i), std::string(100, 'v'));
    }
    ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 1, 4096, 7}, {}).ok());
  }
  void remove_each(int first, int count) {
    MemTable table;
    for (int i = first; i < first + count; ++i) {
      table.remove(++m_sequence, long_key(i));
    }
    ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 1, 4096, 7}, {}).ok());
    for (bool did = true; did;) {
      ASSERT_TRUE(m_tree->compact_once({}, &did).ok());
    }
  }
};

TEST_F(LargeDescriptorTest, AFewTombstonesDoNotPayForIt) {
  remove_each(100, 150);
  EXPECT_EQ(m_tree->statistics().purges, 0u);
  EXPECT_EQ(m_tree->statistics().compaction_bytes, 0u);
  const uint64_t enough = m_tree->statistics().descriptor_bytes / 512 + 100;
  remove_each(2000, static_cast<int>(enough));
  EXPECT_EQ(m_tree->statistics().purges, 1u);
  EXPECT_EQ(m_tree->statistics().entries, uint64_t{kLongKeys} + 150 - enough);
}

TEST_F(LargeDescriptorTest, AMoveMovesSeveralTimesAsMuch) {
  const uint64_t descriptor_bytes = m_tree->statistics().descriptor_bytes;
  std::set<uint64_t> zones;
  for (uint64_t zone = 0; zone < m_tree->zone_usage().size() / 2; ++zone) {
    zones.insert(zone);
  }
  Tree::Moved moved;
  ASSERT_TRUE(m_tree->move_out_of(zones, 64 << 10, {}, &moved).ok());
  EXPECT_TRUE(moved.any);
  EXPECT_GT(moved.moved_bytes, 4 * descriptor_bytes);
  EXPECT_LT(moved.written_bytes, moved.moved_bytes * 4 / 3);
}

TEST_F(LargeDescriptorTest, APassThatGainsLessDoesNotBegin) {
  put_each(0, 30);  // half of a zone dies
  ASSERT_TRUE(m_tree->compact_all({}).ok());
  ASSERT_FALSE(Defragmenter::choose(m_tree->zone_usage(), m_options.geometry.zone_bytes, 0.5).empty());
  const uint64_t written = m_tree->statistics().compaction_bytes;
  Defragmenter defragmenter(m_tree.get());
  defragmenter.start({.gain_min = 0.5});
  std::chrono::microseconds wait;
  while (defragmenter.running()) {
    ASSERT_TRUE(defragmenter.step({}, &wait).ok());
  }
  EXPECT_EQ(m_tree->statistics().compaction_bytes, written);
}

}  // namespace
}  // namespace vtkv
