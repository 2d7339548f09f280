// SPDX-License-Identifier: LGPL-2.1-or-later
// Databases whose blocks are compressed, and the way of older ones there.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vtkv/db.h"
#include "vtkv/testing/compressed_blocks.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fault.h"
#include "vtkv/tree/manifest.h"

namespace vtkv {
namespace {

class DbCompressionTest : public testing::Test {
 protected:
  DbCompressionTest() {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 32 << 10;
    m_options.compress_blocks = false;
  }
  void make() { ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok()); }
  void make_anew() {
    m_db.reset();
    m_model.clear();
    for (const std::string directory : {"/db/log", "/db"}) {
      std::vector<std::string> names;
      (void)m_env.list_directory(directory, &names);
      for (const std::string& name : names) {
        (void)m_env.remove_file(directory + "/" + name);
      }
    }
    m_options.compress_blocks = false;
    make();
    open();
    put(0, 100);
    ASSERT_TRUE(m_db->flush().ok());
  }
  void open() {
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  Status upgrade(bool* changed) {
    m_db.reset();
    m_options.compress_blocks = true;
    return DB::upgrade(&m_env, "/db", m_options, changed);
  }
  // Values as onodes are: a half of each is like that of others.
  void put(int first, int end, const std::string& of = "first") {
    for (int i = first; i < end; ++i) {
      const std::string key = "object " + std::to_string(100000 + i);
      std::string value = of + std::string(100, 'o');
      for (uint64_t word = 1; word <= 4; ++word) {
        value += std::to_string((static_cast<uint64_t>(i) * 4 + word) * 0x9e3779b97f4a7c15);
      }
      WriteBatch batch;
      batch.put(key, value);
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
      m_model[key] = std::move(value);
    }
  }
  void expect_all() {
    const auto iterator = m_db->new_iterator("", "z");
    auto expected = m_model.begin();
    for (iterator->seek_to_first(); iterator->valid(); iterator->next(), ++expected) {
      ASSERT_NE(expected, m_model.end());
      EXPECT_EQ(iterator->key(), expected->first);
      EXPECT_EQ(iterator->value(), expected->second);
    }
    EXPECT_TRUE(iterator->status().ok());
    EXPECT_EQ(expected, m_model.end());
    for (const auto& [key, value] : m_model) {
      std::string found;
      EXPECT_TRUE(m_db->get(key, &found).ok());
      EXPECT_EQ(found, value);
    }
    std::vector<std::string> findings;
    m_db->verify(&findings);
    EXPECT_TRUE(findings.empty()) << findings.front();
  }
  int compressed_blocks() { return vtkv::compressed_blocks(&m_env, "/db/tree"); }
  struct Copies {
    Checkpoint newest, older;
  };
  Copies copies() {
    std::unique_ptr<Manifest> manifest;
    Copies found;
    EXPECT_TRUE(Manifest::open(&m_env, "/db", &manifest, &found.newest, &found.older).ok());
    return found;
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
  std::map<std::string, std::string> m_model;
  const Features m_compressed{.compat = {}, .ro_compat = {}, .incompat = {kCompressedBlocksFeature}};
};

TEST_F(DbCompressionTest, TheTreeTakesLittleMoreThanHalf) {
  m_options.memtable_bytes = 256 << 10;
  std::map<bool, uint64_t> bytes;
  for (const bool compress : {false, true}) {
    m_options.compress_blocks = compress;
    const std::string directory = compress ? "/small" : "/db";
    ASSERT_TRUE(DB::create(&m_env, directory, m_options).ok());
    ASSERT_TRUE(DB::open(&m_env, directory, m_options, &m_db).ok());
    put(0, 3000);
    put(0, 3000, "second");
    ASSERT_TRUE(m_db->compact().ok());
    bytes[compress] = m_db->statistics().tree_live_bytes;
    expect_all();
    m_db.reset();
  }
  EXPECT_LT(bytes[true], bytes[false] * 55 / 100);
}

// The option may change with every open: blocks of both kinds lie side by side, in runs that are stitched together.
TEST_F(DbCompressionTest, BlocksOfBothKindsLieSideBySide) {
  m_options.compress_blocks = true;
  m_options.auto_compaction = false;
  m_options.stitch_threshold_bytes = 0;
  m_options.memtable_bytes = 1 << 20;
  make();
  int compressed = 0;
  for (int round = 0; round < 6; ++round) {
    m_options.compress_blocks = round % 2 == 0;
    open();
    put(round * 500, round * 500 + 600, "round " + std::to_string(round));
    ASSERT_TRUE(m_db->flush().ok());
    m_db.reset();
    const int before = std::exchange(compressed, compressed_blocks());
    EXPECT_EQ(compressed > before, m_options.compress_blocks) << round;
  }
  open();
  ASSERT_TRUE(m_db->compact().ok());
  EXPECT_GT(m_db->statistics().stitched_bytes, 0u);
  expect_all();
  m_db.reset();
  EXPECT_GT(compressed_blocks(), 0);
  ASSERT_TRUE(DB::open_read_only(&m_env, "/db", m_options, &m_db).ok());
  expect_all();
}

// What is left over before something that is stitched says nothing of the blocks behind it.
TEST_F(DbCompressionTest, StitchingCostsLittleOfTheGain) {
  m_options.compress_blocks = true;
  m_options.auto_compaction = false;
  m_options.memtable_bytes = 8 << 20;
  m_options.geometry.log_segment_bytes = 1 << 20;
  m_options.geometry.zone_bytes = 1 << 20;
  m_options.stitch_threshold_bytes = 0;
  make();
  open();
  put(0, 8000);
  ASSERT_TRUE(m_db->flush().ok());
  for (int first = 0; first < 8000; first += 160) {  // 60 that change, 100 that stay
    put(first, first + 60, "second");
  }
  ASSERT_TRUE(m_db->compact().ok());
  const DBStatistics stitched = m_db->statistics();
  EXPECT_GT(stitched.stitched_bytes, 0u);
  m_db->set_stitch_threshold(kNeverStitch);
  put(0, 1, "third");
  ASSERT_TRUE(m_db->compact().ok());
  EXPECT_EQ(m_db->statistics().stitched_bytes, stitched.stitched_bytes);
  std::printf("%lu bytes stitched, %lu copied\n", stitched.tree_live_bytes, m_db->statistics().tree_live_bytes);
  EXPECT_LT(stitched.tree_live_bytes, m_db->statistics().tree_live_bytes * 5 / 4);
  expect_all();
}

TEST_F(DbCompressionTest, ADatabaseWithoutTheFeatureHasNoneOfThem) {
  make();
  m_options.compress_blocks = true;
  open();
  put(0, 3000);
  ASSERT_TRUE(m_db->compact().ok());
  m_db.reset();
  EXPECT_EQ(compressed_blocks(), 0);
  EXPECT_TRUE(copies().newest.features.empty());
}

TEST_F(DbCompressionTest, AnUpgradeIsInBothCopiesOfTheManifest) {
  make();
  open();
  put(0, 1000);
  ASSERT_TRUE(m_db->flush().ok());
  bool changed = false;
  ASSERT_TRUE(upgrade(&changed).ok());
  EXPECT_TRUE(changed);
  EXPECT_EQ(copies().newest.features, m_compressed);
  EXPECT_EQ(copies().older.features, m_compressed);
  EXPECT_EQ(compressed_blocks(), 0) << "it changes nothing else";
  ASSERT_TRUE(upgrade(&changed).ok());
  EXPECT_FALSE(changed);
  open();
  expect_all();
  put(0, 1000, "second");  // blocks that nothing overlaps stay as they are
  ASSERT_TRUE(m_db->compact().ok());
  m_db.reset();
  EXPECT_GT(compressed_blocks(), 0);
  open();
  expect_all();
}

TEST_F(DbCompressionTest, AnUpgradeWithoutTheOptionGivesNone) {
  make();
  bool changed = true;
  ASSERT_TRUE(DB::upgrade(&m_env, "/db", m_options, &changed).ok());
  EXPECT_FALSE(changed);
  EXPECT_TRUE(copies().newest.features.empty());
}

TEST_F(DbCompressionTest, AnUpgradeWaitsForNobody) {
  make();
  open();
  bool changed = false;
  m_options.compress_blocks = true;
  EXPECT_TRUE(DB::upgrade(&m_env, "/db", m_options, &changed).code() == Status::Code::busy);
  m_db.reset();
  EXPECT_TRUE(DB::upgrade(&m_env, "/none", m_options, &changed).is_not_found());
}

// It is as it was, or upgraded in one copy or in both; and asking again ends it.
TEST_F(DbCompressionTest, AnUpgradeThatFailsLosesNothing) {
  std::set<std::pair<bool, bool>> states;  // of the newest copy, and of the older
  for (const SimCall call : {SimCall::write, SimCall::sync}) {
    for (uint64_t n = 1;; ++n) {
      make_anew();
      m_db.reset();
      NthFailure failure(&m_env, call, n);
      bool changed = false;
      const Status status = upgrade(&changed);
      const bool reached = failure.end();
      EXPECT_EQ(status.ok(), !reached) << status.to_string();
      if (!status.ok()) {
        states.insert({copies().newest.features == m_compressed, copies().older.features == m_compressed});
      }
      open();
      expect_all();
      if (!reached) {
        EXPECT_GT(n, 1u);
        break;
      }
      ASSERT_TRUE(upgrade(&changed).ok());
      EXPECT_EQ(copies().newest.features, m_compressed);
      EXPECT_EQ(copies().older.features, m_compressed);
      open();
      expect_all();
    }
  }
  EXPECT_TRUE(states.contains({false, false}));
  EXPECT_TRUE(states.contains({true, false}));
  EXPECT_FALSE(states.contains({false, true}));
}

// The crash of an upgrade leaves one copy with the feature. Before anything else is written the other has it, too: were
// the newest copy damaged, a program that does not know the feature would go on with the other.
class HalfUpgradedDbTest : public DbCompressionTest {
 protected:
  void make_half_upgraded() {
    make_anew();
    m_db.reset();
    std::unique_ptr<Manifest> manifest;
    Checkpoint newest, older;
    ASSERT_TRUE(Manifest::open(&m_env, "/db", &manifest, &newest, &older).ok());
    ++newest.epoch;
    newest.features = m_compressed;
    ASSERT_TRUE(manifest->write(newest).ok());
    manifest.reset();
    ASSERT_TRUE(copies().older.features.empty());
    m_options.compress_blocks = true;
  }
};

TEST_F(HalfUpgradedDbTest, WhoOnlyReadsWritesNothing) {
  make_half_upgraded();
  ASSERT_TRUE(DB::open_read_only(&m_env, "/db", m_options, &m_db).ok());
  expect_all();
  m_db.reset();
  EXPECT_TRUE(copies().older.features.empty());
}

TEST_F(HalfUpgradedDbTest, TheOtherCopyGetsTheFeatureBeforeABlockIsCompressed) {
  uint64_t n = 1;
  for (bool reached = true; reached; ++n) {
    make_half_upgraded();
    NthFailure failure(&m_env, SimCall::write, n, /*persistent=*/true);
    if (DB::open(&m_env, "/db", m_options, &m_db).ok()) {
      for (int i = 0; i < 200; ++i) {
        WriteBatch batch;
        batch.put("z" + std::to_string(i), std::string(200, 'z'));
        (void)m_db->write(std::move(batch), {.sync = false});
      }
      (void)m_db->flush();
    }
    reached = failure.end();
    m_db.reset();
    EXPECT_TRUE(copies().older.features == m_compressed || compressed_blocks() == 0) << n;
  }
  EXPECT_GT(n, 3u);
  EXPECT_GT(compressed_blocks(), 0);
  EXPECT_EQ(copies().newest.features, m_compressed);
}

// The one that is read may be in the host's memory alone, when the process that wrote it was killed. A loss of power
// while the other is written must not tear both.
TEST_F(HalfUpgradedDbTest, OneCopyIsDurableBeforeTheOtherIsWritten) {
  for (const bool upgrades : {false, true}) {
    upgrades ? make_anew() : make_half_upgraded();
    m_db.reset();
    m_options.compress_blocks = true;
    const uint64_t writes = m_env.calls(SimCall::write);
    NthFailure failure(&m_env, SimCall::sync, 1);
    bool changed = false;
    const Status status =
        upgrades ? DB::upgrade(&m_env, "/db", m_options, &changed) : DB::open(&m_env, "/db", m_options, &m_db);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(failure.end());
    EXPECT_EQ(m_env.calls(SimCall::write), writes);
  }
}

TEST_F(HalfUpgradedDbTest, AnUpgradeTellsThatTheHostIsFull) {
  make_half_upgraded();
  NthFailure failure(&m_env, SimCall::write, 1, /*persistent=*/true, ENOSPC);
  bool changed = false;
  EXPECT_TRUE(DB::upgrade(&m_env, "/db", m_options, &changed).is_no_space());
  EXPECT_TRUE(failure.end());
  ASSERT_TRUE(DB::upgrade(&m_env, "/db", m_options, &changed).ok());
  EXPECT_EQ(copies().older.features, m_compressed);
}

TEST_F(HalfUpgradedDbTest, AFullHostIsNoReasonNotToOpen) {
  make_half_upgraded();
  NthFailure failure(&m_env, SimCall::write, 1, /*persistent=*/false, ENOSPC);
  open();
  EXPECT_TRUE(failure.end());
  put(0, 1000, "second");
  ASSERT_TRUE(m_db->flush().ok());
  expect_all();
  m_db.reset();
  EXPECT_EQ(compressed_blocks(), 0);
  EXPECT_EQ(copies().newest.features, m_compressed);
  EXPECT_EQ(copies().older.features, m_compressed);
  open();
  put(0, 1000, "third");
  ASSERT_TRUE(m_db->flush().ok());
  expect_all();
  m_db.reset();
  EXPECT_GT(compressed_blocks(), 0);
}

}  // namespace
}  // namespace vtkv
