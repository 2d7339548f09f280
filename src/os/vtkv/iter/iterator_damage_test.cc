// SPDX-License-Identifier: LGPL-2.1-or-later
// Iterators over a tree of which a block cannot be read: each gives what is there up to an error, in both directions.

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

constexpr int kKeys = 6;
constexpr int kVersions = 60;  // of each, by so many snapshots: several blocks

class IteratorDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 8, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 1 << 20;
    m_options.auto_compaction = false;
    m_options.block_cache_bytes = 0;
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    ASSERT_TRUE(DB::open(&m_env, "/db", m_options, &m_db).ok());
    for (int version = 0; version < kVersions; ++version) {
      WriteBatch batch;
      for (int key = 0; key < kKeys; ++key) {
        if ((version + key) % 11 == 0) {
          batch.remove(name(key));
        } else {
          batch.put(name(key), value(key, version));
        }
      }
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
      m_snapshots.push_back(m_db->take_snapshot());
    }
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  void TearDown() override {
    for (const Snapshot* const snapshot : m_snapshots) {
      m_db->release_snapshot(snapshot);
    }
  }

  static std::string name(int key) { return "key" + std::to_string(key); }
  static std::string value(int key, int version) {
    return std::to_string(key) + " " + std::to_string(version) + std::string(200, 'v');
  }
  // The keys and values of a snapshot.
  static std::map<std::string, std::string> truth(int version) {
    std::map<std::string, std::string> entries;
    for (int key = 0; key < kKeys; ++key) {
      if ((version + key) % 11 != 0) {
        entries.emplace(name(key), value(key, version));
      }
    }
    return entries;
  }
  // What it gives before its error, if it has one.
  static void expect_truth(Iterator& it, std::map<std::string, std::string> expected, bool forward) {
    for (forward ? it.seek_to_first() : it.seek_to_last(); it.valid(); forward ? it.next() : it.previous()) {
      ASSERT_FALSE(expected.empty()) << it.key();
      const auto next = forward ? expected.begin() : std::prev(expected.end());
      ASSERT_EQ(next->first, it.key());
      ASSERT_TRUE(next->second == it.value()) << it.key() << ": " << it.value().substr(0, 5);
      expected.erase(next);
    }
    ASSERT_TRUE(expected.empty() || !it.status().ok()) << expected.size() << " keys are passed over";
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
  std::vector<const Snapshot*> m_snapshots;
};

TEST_F(IteratorDamageTest, NoKeyIsPassedOverAndNoOldVersionGivenForANewerOne) {
  constexpr uint64_t kStep = 4096;
  uint64_t bytes = 0;
  std::unique_ptr<File> tree;
  ASSERT_TRUE(m_env.open_file("/db/tree", {}, &tree).ok());
  ASSERT_TRUE(tree->size(&bytes).ok());
  unsigned failed = 0;
  for (uint64_t at = 0; at < bytes; at += kStep) {
    for (int version = 0; version < kVersions; version += 7) {
      for (const bool forward : {true, false}) {
        m_env.set_bad(SimBad::reads, "/db/tree", at, at + kStep);
        const auto it = m_db->new_iterator("a", "z", m_snapshots[version]);
        ASSERT_NO_FATAL_FAILURE(expect_truth(*it, truth(version), forward))
            << "bad at " << at << ", version " << version << (forward ? ", forward" : ", backward");
        failed += !it->status().ok();
        m_env.clear_faults();
      }
    }
  }
  EXPECT_GT(failed, 20u) << "too few of its blocks are read";
}

}  // namespace
}  // namespace vtkv
