// SPDX-License-Identifier: LGPL-2.1-or-later
// What is said of keys when a part of the database cannot be read: which are missing, which may be wrong, and that
// no others are.

#include "vtkv/salvage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "vtkv/span/block.h"
#include "vtkv/span/block_builder.h"
#include "vtkv/span/block_range.h"
#include "vtkv/testing/db_fixture.h"

namespace vtkv {
namespace {

constexpr int kKeys = 200;
constexpr size_t kValueBytes = 100;

class DbSalvageTest : public DbFixture {
 protected:
  using Blocks = std::map<uint64_t, BlockKind>;  // by where they lie in the tree's file

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DbFixture::SetUp());
    m_options.memtable_bytes = 1 << 20;
    m_options.auto_compaction = false;
  }
  void TearDown() override {
    m_salvaged.close();
    DbFixture::TearDown();
  }
  void open() { ASSERT_TRUE(DB::open(m_env, m_directory, m_options, &m_db).ok()); }

  static std::string key(int number) { return "key" + std::to_string(1000 + number); }
  static std::string value(int number, char kind) { return std::to_string(number) + std::string(kValueBytes, kind); }
  // In one record: the log does not ask for a checkpoint of its own.
  void put(int first, int end, char kind, size_t more_bytes = 0) {
    WriteBatch batch;
    for (int number = first; number < end; ++number) {
      batch.put(key(number), value(number, kind) + std::string(more_bytes, kind));
    }
    ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  }
  // A run of what was put since; its blocks.
  Blocks flush() {
    const Blocks before = blocks();
    EXPECT_TRUE(m_db->flush().ok());
    Blocks made = blocks();
    std::erase_if(made, [&](const auto& block) { return before.contains(block.first); });
    return made;
  }

  std::string read(const std::string& path) {
    std::unique_ptr<File> file;
    uint64_t size = 0;
    EXPECT_TRUE(m_env->open_file(path, {.direct = false}, &file).ok());
    EXPECT_TRUE(file->size(&size).ok());
    std::string content(size, '\0');
    EXPECT_TRUE(file->read(0, size, content.data()).ok());
    return content;
  }
  std::string tree_path() const { return m_directory + "/tree"; }
  static Status parse(std::string_view bytes, BlockKind* kind, std::shared_ptr<const Block>* block) {
    block_header_t header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    *kind = static_cast<BlockKind>(header.kind);
    return Block::parse(bytes, {*kind, header.span_id, header.unit}, block);
  }
  Blocks blocks() {
    Blocks found;
    const std::string content = read(tree_path());
    for (size_t at = 0; at + kUnitBytes <= content.size(); at += kUnitBytes) {
      BlockKind kind{};
      std::shared_ptr<const Block> block;
      if (parse(std::string_view(content).substr(at), &kind, &block).ok()) {
        found[at] = kind;
      }
    }
    return found;
  }
  std::vector<std::string> keys_of(uint64_t at) {
    const std::string content = read(tree_path());
    BlockKind kind{};
    std::shared_ptr<const Block> block;
    EXPECT_TRUE(parse(std::string_view(content).substr(at), &kind, &block).ok());
    std::vector<std::string> keys;
    BlockIterator entries(block);
    for (entries.seek_to_first(); entries.valid(); entries.next()) {
      keys.emplace_back(entries.entry().key);
    }
    return keys;
  }

  void damage(const std::string& path, uint64_t at, size_t bytes) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env->open_file(path, {.direct = false}, &file).ok());
    const std::string garbage(bytes, '\xa5');
    ASSERT_TRUE(file->write(at, garbage.data(), garbage.size()).ok());
  }
  void damage(const Blocks& blocks, BlockKind which) {
    unsigned damaged = 0;
    for (const auto& [at, kind] : blocks) {
      if (kind == which) {
        damage(tree_path(), at, kUnitBytes);
        ++damaged;
      }
    }
    ASSERT_GT(damaged, 0u);
  }

  // Of a new database: all keys, in one run that both copies of the manifest name.
  Blocks flush_all_keys() {
    open();
    put(0, kKeys, 'a');
    Blocks run = flush();
    put(kKeys, kKeys + 1, 'b');
    flush();
    return run;
  }

  // The unit that a line of the run's only index names becomes a wrong one, under a good checksum.
  void contradict(const Blocks& run, size_t line) {
    const auto at = std::find_if(run.begin(), run.end(), [](const auto& b) { return b.second == BlockKind::index; });
    ASSERT_NE(at, run.end());
    const std::string content = read(tree_path()).substr(at->first);
    block_header_t header;
    std::memcpy(&header, content.data(), sizeof(header));
    BlockKind kind{};
    std::shared_ptr<const Block> block;
    ASSERT_TRUE(parse(content, &kind, &block).ok());
    BlockIterator lines(block);
    BlockBuilder builder(BlockKind::index);
    ASSERT_LT(line, block->entries());
    for (lines.seek_to_first(); lines.valid(); lines.next()) {
      BlockRange range;
      ASSERT_TRUE(range.decode_line(lines.entry()));
      range.unit += line-- == 0 ? 1 : 0;
      std::string value;
      range.encode(&value);
      builder.add({range.first_key, range.first_sequence, EntryType::value, value});
    }
    std::string bytes;
    builder.finish(header.span_id, header.unit, &bytes);
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env->open_file(tree_path(), {.direct = false}, &file).ok());
    ASSERT_TRUE(file->write(at->first, bytes.data(), bytes.size()).ok());
  }

  void salvage() {
    m_db.reset();
    const Status status = open_to_salvage(m_env, m_directory, &m_salvaged);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  std::string get(int number) {
    std::string found;
    const Status status = m_salvaged.db->get(key(number), &found);
    return status.ok() ? found : status.is_not_found() ? "none" : status.to_string();
  }
  bool may_hold(int number, bool in_range = false) { return m_salvaged.lost->may_hold(key(number), in_range); }
  bool says(const std::string& words) const {
    return std::any_of(m_salvaged.notes.begin(), m_salvaged.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  }

  SalvagedDb m_salvaged;
};

TEST_P(DbSalvageTest, OfASoundDatabaseNothingIsLost) {
  open();
  put(0, kKeys, 'a');
  flush();
  salvage();
  EXPECT_TRUE(m_salvaged.notes.empty());
  EXPECT_TRUE(m_salvaged.lost->ranges().empty());
  EXPECT_FALSE(may_hold(7, true));
  EXPECT_FALSE(m_salvaged.lost->may_hold_any("", "z"));
  EXPECT_EQ(get(7), value(7, 'a'));
}

// Keys that only longer ones of the greatest byte follow are among all keys.
TEST_P(DbSalvageTest, AValueOfALastKeyIsLostAsAnyOther) {
  m_options.value_separation_bytes = 100;
  open();
  const std::string last = std::string(100, '\xff') + "abc";
  WriteBatch batch;
  batch.put(last, std::string(3000, 'v'));
  ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  flush();
  unsigned damaged = 0;
  std::vector<std::string> names;
  ASSERT_TRUE(m_env->list_directory(m_directory + "/log", &names).ok());
  for (const std::string& name : names) {
    const std::string path = m_directory + "/log/" + name;
    if (const size_t at = read(path).find(std::string(3000, 'v')); at != std::string::npos) {
      damage(path, at + 100, 1);
      ++damaged;
    }
  }
  ASSERT_EQ(damaged, 1u);
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_FALSE(findings.empty());
  salvage();
  ASSERT_EQ(m_salvaged.lost->ranges().size(), 1u);
  EXPECT_EQ(m_salvaged.lost->ranges()[0].first_key, last);
}

TEST_P(DbSalvageTest, AValueOfTheLogIsLostAlone) {
  constexpr size_t kMoreBytes = 3000;
  m_options.value_separation_bytes = kMoreBytes;
  open();
  put(0, 10, 'a', kMoreBytes);
  flush();
  unsigned damaged = 0;
  std::vector<std::string> names;
  ASSERT_TRUE(m_env->list_directory(m_directory + "/log", &names).ok());
  for (const std::string& name : names) {
    const std::string path = m_directory + "/log/" + name;
    if (const size_t at = read(path).find(value(5, 'a')); at != std::string::npos) {
      damage(path, at + 100, 1);
      ++damaged;
    }
  }
  ASSERT_EQ(damaged, 1u);
  salvage();
  for (int number = 0; number < 10; ++number) {
    EXPECT_EQ(may_hold(number), number == 5) << number;
    EXPECT_EQ(get(number), number == 5 ? "none" : value(number, 'a') + std::string(kMoreBytes, 'a')) << number;
  }
  ASSERT_EQ(m_salvaged.lost->ranges().size(), 1u);
  const LostEntries::Range& range = m_salvaged.lost->ranges()[0];
  EXPECT_EQ(std::tuple(range.of_any_key, range.first_key, range.last_key, range.entries),
            std::tuple(false, key(5), key(5), 1u));
  EXPECT_NE(range.reason, "");
  EXPECT_TRUE(m_salvaged.lost->may_hold_any(key(5), key(6)));
  EXPECT_FALSE(m_salvaged.lost->may_hold_any(key(6), "z"));
  EXPECT_FALSE(m_salvaged.lost->may_hold_any("", key(5)));
}

// Whoever is newer says what the key is, whatever lay below.
TEST_P(DbSalvageTest, WhatIsNewerThanWhatIsLostIsNotDoubtful) {
  open();
  put(0, kKeys, 'a');
  const Blocks oldest = flush();
  put(20, 21, 'b');
  flush();
  put(10, 11, 'c');
  damage(oldest, BlockKind::entries);
  salvage();
  EXPECT_EQ(get(10), value(10, 'c'));
  EXPECT_FALSE(may_hold(10)) << "it is in a memtable";
  EXPECT_EQ(get(20), value(20, 'b'));
  EXPECT_FALSE(may_hold(20)) << "it is in a newer run";
  EXPECT_EQ(get(30), "none");
  EXPECT_TRUE(may_hold(30));
}

TEST_P(DbSalvageTest, WithItsIndexGoneABlockIsLostBetweenItsNeighbours) {
  const Blocks run = flush_all_keys();
  std::vector<uint64_t> entries;
  for (const auto& [at, kind] : run) {
    if (kind == BlockKind::entries) {
      entries.push_back(at);
    }
  }
  ASSERT_GE(entries.size(), 4u);
  const std::vector<std::string> before = keys_of(entries[1]), lost = keys_of(entries[2]), behind = keys_of(entries[3]);
  damage(run, BlockKind::index);
  damage(tree_path(), entries[2], kUnitBytes);
  salvage();
  EXPECT_TRUE(says("made an index anew"));
  ASSERT_EQ(m_salvaged.lost->ranges().size(), 1u);
  const LostEntries::Range& range = m_salvaged.lost->ranges()[0];
  EXPECT_EQ(std::tuple(range.first_key, range.last_key, range.entries),
            std::tuple(before.back(), behind.front(), lost.size()));
  for (int number = 0; number < kKeys; ++number) {
    const bool is_lost = std::find(lost.begin(), lost.end(), key(number)) != lost.end();
    EXPECT_EQ(get(number), is_lost ? "none" : value(number, 'a')) << number;
    EXPECT_TRUE(!is_lost || may_hold(number)) << number;
  }
}

TEST_P(DbSalvageTest, AnIndexThatContradictsItsRunIsNotReadAgain) {
  const Blocks run = flush_all_keys();
  ASSERT_NO_FATAL_FAILURE(contradict(run, 2));
  salvage();
  EXPECT_TRUE(says("made an index anew"));
  EXPECT_TRUE(m_salvaged.lost->ranges().empty());
  for (int number = 0; number < kKeys; ++number) {
    EXPECT_EQ(get(number), value(number, 'a')) << number;
  }
}

// The first slice is found by the index that is on disk; the second shows that it is wrong.
TEST_P(DbSalvageTest, AnIndexMadeAnewKnowsTheSlicesBefore) {
  m_options.stitch_threshold_bytes = 0;
  open();
  put(0, kKeys, 'a');
  const Blocks run = flush();
  put(kKeys / 2, kKeys / 2 + 1, 'b');
  flush();
  ASSERT_TRUE(m_db->compact().ok());
  ASSERT_GT(m_db->statistics().stitched_bytes, 0u);
  put(kKeys, kKeys + 1, 'c');
  flush();  // now both copies of the manifest name the compacted run
  const auto blocks_of_entries =
      std::count_if(run.begin(), run.end(), [](const auto& block) { return block.second == BlockKind::entries; });
  ASSERT_NO_FATAL_FAILURE(contradict(run, blocks_of_entries - 1));
  salvage();
  EXPECT_TRUE(says("made an index anew"));
  EXPECT_TRUE(m_salvaged.lost->ranges().empty());
  for (int number = 0; number < kKeys; ++number) {
    EXPECT_EQ(get(number), value(number, number == kKeys / 2 ? 'b' : 'a')) << number;
  }
}

// Or a reader that comes from behind would look for the key's oldest version where it is lost.
TEST_P(DbSalvageTest, ABlockThatEndsInVersionsOfAKeyIsLostWithTheNext) {
  constexpr int kSplit = 20;
  open();
  put(0, kSplit, 'a');
  std::vector<const Snapshot*> snapshots;  // keep all versions
  for (char kind = 'b'; kind < 'n'; ++kind) {
    put(kSplit, kSplit + 1, kind, 1000);
    snapshots.push_back(m_db->take_snapshot());
  }
  put(kSplit + 1, 2 * kSplit, 'a');
  const Blocks run = flush();
  for (const Snapshot* snapshot : snapshots) {
    m_db->release_snapshot(snapshot);
  }
  put(kKeys, kKeys + 1, 'b');
  flush();  // now both copies of the manifest name the run
  const auto lost = std::find_if(run.begin(), run.end(), [&](const auto& block) {
    return block.second == BlockKind::entries && keys_of(block.first).front() == key(kSplit);
  });
  ASSERT_TRUE(lost != run.end() && lost != run.begin());
  const std::vector<std::string> before = keys_of(std::prev(lost)->first);
  ASSERT_EQ(before.back(), key(kSplit));
  ASSERT_GT(before.size(), 1u);
  damage(tree_path(), lost->first, kUnitBytes);
  salvage();
  std::set<std::string> found;
  const auto it = m_salvaged.db->new_iterator("", "z", nullptr);
  for (it->seek_to_last(); it->valid(); it->previous()) {
    found.emplace(it->key());
  }
  EXPECT_TRUE(it->status().ok()) << it->status().to_string();
  for (int number = 0; number < 2 * kSplit; ++number) {
    const bool is_lost = std::find(before.begin(), before.end(), key(number)) != before.end();
    EXPECT_EQ(may_hold(number), is_lost) << number;
    if (number != kSplit) {  // of which older versions are left
      EXPECT_EQ(found.contains(key(number)), !is_lost) << number;
      EXPECT_EQ(get(number), is_lost ? "none" : value(number, 'a')) << number;
    }
  }
}

// What they removed is back.
TEST_P(DbSalvageTest, LostRangeTombstonesMakeDoubtfulWhatTheyMayHaveRemoved) {
  open();
  put(0, kKeys, 'a');
  flush();
  WriteBatch batch;
  batch.remove_range(key(50), key(60));
  ASSERT_TRUE(m_db->write(std::move(batch)).ok());
  const Blocks run = flush();
  put(57, 58, 'b');
  flush();
  damage(run, BlockKind::tombstones);
  salvage();
  EXPECT_EQ(get(55), value(55, 'a'));
  EXPECT_TRUE(may_hold(55, true));
  EXPECT_FALSE(may_hold(55, false)) << "no entry of one key is lost";
  EXPECT_TRUE(may_hold(5, true)) << "which keys they removed nobody knows";
  EXPECT_EQ(get(57), value(57, 'b'));
  EXPECT_FALSE(may_hold(57, true)) << "it is newer";
  EXPECT_TRUE(m_salvaged.lost->may_hold_any(key(0), key(1)));
  ASSERT_EQ(m_salvaged.lost->ranges().size(), 1u);
  EXPECT_TRUE(m_salvaged.lost->ranges()[0].of_any_key);
}

TEST_P(DbSalvageTest, ARunThatIsLostKeepsItsPlaceAmongTheOthers) {
  open();
  put(0, kKeys, 'a');
  flush();
  put(50, 60, 'b');
  const Blocks run = flush();
  put(57, 58, 'c');
  flush();
  damage(run, BlockKind::descriptor);
  salvage();
  EXPECT_EQ(get(55), value(55, 'a'));
  EXPECT_TRUE(may_hold(55));
  EXPECT_TRUE(may_hold(5)) << "which keys the run had nobody knows";
  EXPECT_EQ(get(57), value(57, 'c'));
  EXPECT_FALSE(may_hold(57)) << "it is newer";
  ASSERT_EQ(m_salvaged.lost->ranges().size(), 1u);
  EXPECT_TRUE(m_salvaged.lost->ranges()[0].of_any_key);
}

// Nothing is lost as long as the log leads on from the checkpoint before.
TEST_P(DbSalvageTest, TheCheckpointBeforeIsTakenWhenLessOfItIsLost) {
  open();
  put(0, kKeys, 'a');
  flush();
  put(50, 60, 'b');
  const Blocks newest = flush();
  damage(newest, BlockKind::entries);
  salvage();
  EXPECT_TRUE(says("went back to the checkpoint before"));
  EXPECT_TRUE(m_salvaged.lost->ranges().empty());
  EXPECT_EQ(get(55), value(55, 'b'));
  EXPECT_FALSE(may_hold(55, true));
}

INSTANTIATE_TEST_SUITE_P(Simulated, DbSalvageTest, testing::Values(false));

}  // namespace
}  // namespace vtkv
