// SPDX-License-Identifier: LGPL-2.1-or-later
// Random operations against the model: reads in both directions, bounded reads, snapshots, flushes, compactions
// and reopening must give what a std::map gives; and when nobody writes, nothing is written.

#include "vtkv/testing/kv_model.h"

#include <gtest/gtest.h>

#include <random>

#include "vtkv/testing/at_rest.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class KvModelTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    m_random.seed(GetParam());
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 4096u << m_random() % 4;
    m_options.value_separation_bytes = 40 * (m_random() % 3);
    m_options.block_cache_bytes = m_random() % 2 ? 0 : 1 << 20;
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    open();
  }
  void TearDown() override {
    release_snapshots();
    m_db.reset();
  }
  void open() {
    m_db.reset();
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void release_snapshots() {
    for (auto& [snapshot, entries] : m_snapshots) {
      m_db->release_snapshot(snapshot);
    }
    m_snapshots.clear();
  }
  std::string random_key() { return "key" + std::to_string(1000 + m_random() % 200); }

  KvOperations random_operations() {
    KvOperations operations;
    for (size_t i = 1 + m_random() % 5; i > 0; --i) {
      const uint64_t kind = m_random() % 10;
      const std::string key = random_key();
      if (kind < 6) {
        operations.push_back({KvOperation::Kind::put, key, std::string(m_random() % 100, 'a' + m_random() % 26)});
      } else if (kind < 8) {
        operations.push_back({KvOperation::Kind::remove, key, {}});
      } else {
        operations.push_back({KvOperation::Kind::remove_range, key, random_key()});
      }
    }
    return operations;
  }
  void write() {
    const KvOperations operations = random_operations();
    WriteBatch batch;
    apply(operations, &batch);
    apply(operations, &m_model);
    const Status status = m_db->write(std::move(batch), {.sync = m_random() % 2 == 0});
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void compare(const KvEntries& expected, const Snapshot* snapshot) {
    const std::string lower = m_random() % 2 ? "" : random_key();
    const std::string upper = m_random() % 2 ? "z" : random_key();
    KvEntries part;
    for (const auto& [key, value] : expected) {
      if (key >= lower && key < upper) {
        part[key] = value;
      }
    }
    KvEntries found;
    bool backward_agrees = false;
    const Status status = read_entries(*m_db, lower, upper, snapshot, &found, &backward_agrees);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_EQ(difference(part, found), "") << "in [" << lower << ", " << upper << ")";
    ASSERT_TRUE(backward_agrees);
    const std::string key = random_key();
    std::string value;
    const bool exists = m_db->get(key, &value, snapshot).ok();
    ASSERT_EQ(exists, expected.contains(key)) << key;
    if (exists) {
      ASSERT_EQ(value, expected.at(key));
    }
    walk(part, lower, upper, snapshot);
  }
  // A walk that turns around, against the same walk in the model.
  void walk(const KvEntries& part, const std::string& lower, const std::string& upper, const Snapshot* snapshot) {
    auto it = m_db->new_iterator(lower, upper, snapshot);
    const std::string target = random_key();
    auto expected = part.begin();
    if (m_random() % 2) {
      it->seek(target);
      expected = part.lower_bound(target);
    } else {
      it->seek_for_previous(target);
      expected = part.upper_bound(target);
      expected = expected == part.begin() ? part.end() : std::prev(expected);
    }
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(it->valid(), expected != part.end()) << "after seeking " << target;
      if (!it->valid()) {
        return;
      }
      ASSERT_EQ(it->key(), expected->first);
      ASSERT_EQ(it->value(), expected->second);
      if (m_random() % 2) {
        it->next();
        ++expected;
      } else {
        it->previous();
        expected = expected == part.begin() ? part.end() : std::prev(expected);
      }
    }
  }
  void do_something_else() {
    switch (m_random() % 12) {
      case 0:
        ASSERT_TRUE(m_db->flush().ok());
        break;
      case 1:
        ASSERT_TRUE(m_random() % 4 != 0 || m_db->compact().ok());
        break;
      case 4:
        if (m_random() % 8 == 0) {
          const Status status = m_db->collect_garbage(m_random() % 2);
          ASSERT_TRUE(status.ok()) << status.to_string();
        }
        break;
      case 2:
        m_snapshots.emplace_back(m_db->take_snapshot(), m_model);
        break;
      case 3:
        if (m_random() % 8 == 0) {
          release_snapshots();
          open();
        }
        break;
      default:
        break;
    }
  }

  std::mt19937_64 m_random;
  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
  KvEntries m_model;
  std::vector<std::pair<const Snapshot*, KvEntries>> m_snapshots;
};

TEST_P(KvModelTest, AnswersAreThoseOfAMap) {
  for (int i = 0; i < 1200; ++i) {
    ASSERT_NO_FATAL_FAILURE(write());
    ASSERT_NO_FATAL_FAILURE(do_something_else());
    if (i % 4 == 0) {
      ASSERT_NO_FATAL_FAILURE(compare(m_model, nullptr));
      if (!m_snapshots.empty()) {
        const auto& [snapshot, entries] = m_snapshots[m_random() % m_snapshots.size()];
        ASSERT_NO_FATAL_FAILURE(compare(entries, snapshot));
      }
    }
  }
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_TRUE(findings.empty()) << findings.front();
}

INSTANTIATE_TEST_SUITE_P(, KvModelTest, testing::Range<uint64_t>(1, 13));

// A thousand keys of any length, values that are small beside them, snapshots that are held for long: after each load
// the database comes to rest, and answers as the model does.
class KvRestTest : public KvModelTest {
 protected:
  void SetUp() override {
    m_random.seed(GetParam());
    m_options.geometry = {
        .log_segment_bytes = (16u << 10) << m_random() % 3, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = (16u << 10) << m_random() % 4;
    m_options.value_separation_bytes = 16 << m_random() % 3;
    m_options.space_amplification_target = m_random() % 2 ? 2.0 : 1.25;
    m_options.fragmented_values_min = m_random() % 2 ? 4 : 0;
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    open();
    for (size_t i = 0; i < kKeys; ++i) {
      std::string key = std::to_string(i);
      const size_t bytes = 1 + (m_random() % 4 ? m_random() % 60 : m_random() % 1000);
      m_keys.push_back(bytes <= key.size() ? key : key + std::string(bytes - key.size(), 'k'));
    }
  }
  void load(size_t operations) {
    for (size_t i = 0; i < operations; ++i) {
      const std::string& key = m_keys[m_random() % m_keys.size()];
      KvOperation operation{KvOperation::Kind::put, key, std::string(m_random() % 150, 'a' + m_random() % 26)};
      if (const uint64_t kind = m_random() % 64; kind < 8) {
        operation = {KvOperation::Kind::remove, key, {}};
      } else if (kind == 8) {
        operation = {KvOperation::Kind::remove_range, key, key + "0"};
      }
      WriteBatch batch;
      apply({operation}, &batch);
      apply({operation}, &m_model);
      ASSERT_TRUE(m_db->write(std::move(batch), {.sync = m_random() % 16 == 0}).ok());
    }
  }
  void expect_rest() {
    ASSERT_EQ(unrest(&m_env, *m_db), "");
    KvEntries found;
    bool backward_agrees = false;
    ASSERT_TRUE(read_entries(*m_db, "", "z", nullptr, &found, &backward_agrees).ok());
    ASSERT_EQ(difference(m_model, found), "");
    for (const auto& [snapshot, entries] : m_snapshots) {
      found.clear();
      ASSERT_TRUE(read_entries(*m_db, "", "z", snapshot, &found, &backward_agrees).ok());
      ASSERT_EQ(difference(entries, found), "");
    }
    ASSERT_EQ(unrest(&m_env, *m_db), "");  // readers may have relocated values
  }

  static constexpr size_t kKeys = 1000;
  std::vector<std::string> m_keys;
};

TEST_P(KvRestTest, AfterEachLoadItRests) {
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(load(1500));
    ASSERT_NO_FATAL_FAILURE(expect_rest());
    if (round == 1 || round == 2) {
      m_snapshots.emplace_back(m_db->take_snapshot(), m_model);
    } else if (round == 4) {
      release_snapshots();
      ASSERT_NO_FATAL_FAILURE(expect_rest());
      open();
      ASSERT_NO_FATAL_FAILURE(expect_rest());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, KvRestTest, testing::Range<uint64_t>(1, 7));

}  // namespace
}  // namespace vtkv
