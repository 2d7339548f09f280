// SPDX-License-Identifier: LGPL-2.1-or-later
// Values that stay in the log, and the cache they are read through.

#include <gtest/gtest.h>

#include "vtkv/testing/mutations.h"
#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

constexpr size_t kValueBytes = 3000;

class DbValuesTest : public ValuesFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ValuesFixture::SetUp());
    for (int i = 0; i < kKeys; ++i) {
      WriteBatch batch;
      batch.put(key(i), value(i));
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    }
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  static std::string value(int i) { return std::to_string(i) + std::string(kValueBytes, 'v'); }
  void expect_all() {
    for (int i = 0; i < kKeys; ++i) {
      std::string found;
      ASSERT_TRUE(m_db->get(key(i), &found).ok());
      ASSERT_EQ(found, value(i));
    }
  }
  void damage_log() {
    for (const std::string& path : m_env.files()) {
      if (path.ends_with(".log")) {
        for (uint64_t offset = 8 << 10; offset < 64 << 10; offset += 2 << 10) {
          m_env.flip_bits(path, offset, 0x20);
        }
      }
    }
  }

  static constexpr int kKeys = 40;
};

TEST_F(DbValuesTest, AValueIsReadFromTheLogOnce) {
  expect_all();
  EXPECT_EQ(m_db->statistics().value_cache_misses, uint64_t{kKeys});
  EXPECT_EQ(m_db->statistics().value_cache_hits, 0u);
  expect_all();
  EXPECT_EQ(m_db->statistics().value_cache_misses, uint64_t{kKeys});
  EXPECT_EQ(m_db->statistics().value_cache_hits, uint64_t{kKeys});
}

TEST_F(DbValuesTest, AShortScanFillsTheCacheAndUsesIt) {
  for (int round = 0; round < 2; ++round) {
    const auto iterator = m_db->new_iterator("", "z");
    int i = 0;
    for (iterator->seek_to_first(); iterator->valid(); iterator->next(), ++i) {
      ASSERT_EQ(iterator->value(), value(i));
    }
    ASSERT_EQ(i, kKeys);
    EXPECT_EQ(m_db->statistics().value_cache_hits, static_cast<uint64_t>(round) * kKeys);
  }
}

TEST_F(DbValuesTest, BlocksAndValuesShareOneBudget) {
  m_db->set_block_cache_bytes(128 << 10);
  expect_all();
  expect_all();
  EXPECT_LE(m_db->statistics().block_cache_bytes, 128u << 10);
  EXPECT_GT(m_db->statistics().block_cache_bytes, 32u << 10);
  m_db->set_block_cache_bytes(0);
  EXPECT_EQ(m_db->statistics().block_cache_bytes, 0u);
  expect_all();
}

TEST_F(DbValuesTest, TheCacheHidesNoDamageFromVerify) {
  expect_all();
  damage_log();
  expect_all();  // what was checked before
  std::vector<std::string> findings;
  m_db->verify(&findings);
  EXPECT_FALSE(findings.empty());
  m_db->set_block_cache_bytes(0);
  std::string found;
  EXPECT_TRUE(m_db->get(key(kKeys / 2), &found).is_corruption());
}

// What an iterator reads of a value that died in the memtable it was put to: no run leads to its segment, and the log
// has gone round since.
class ReadSegmentTest : public ValuesFixture {
 protected:
  std::string read_after_the_log_went_round() {
    m_options.block_cache_bytes = 0;
    m_options.memtable_bytes = 256 << 10;  // gives up the oldest of what it keeps of the log
    m_options.checkpoint_log_bytes = 4 << 20;
    open();
    put("key", "old");
    const auto iterator = m_db->new_iterator("key", "kez");
    for (int round = 0; round < 8; ++round) {
      for (int i = 0; i < 110; ++i) {  // beyond the first segment
        put("other", std::to_string(i));
      }
      put("key", "new");
      EXPECT_TRUE(m_db->flush().ok());
      m_env.run_until_idle();
    }
    segments = m_db->statistics().log_segments;
    iterator->seek_to_first();
    return !iterator->status().ok() ? iterator->status().to_string()
           : iterator->valid()      ? std::string(iterator->value().substr(0, 3))
                                    : "nothing";
  }
  void put(const std::string& key, const std::string& begin) {
    WriteBatch batch;
    batch.put(key, begin + std::string(2000, 'v'));
    ASSERT_TRUE(m_db->write(std::move(batch), {.sync = false}).ok());
    m_env.run_until_idle();
  }
  uint32_t segments = 0;
};

TEST_F(ReadSegmentTest, IsNotWrittenAgainWhileItIsRead) {
  EXPECT_EQ(read_after_the_log_went_round(), "old");
  // And is, when the reader has gone.
  m_env.advance(std::chrono::seconds(1));
  ASSERT_TRUE(m_db->flush().ok());
  m_env.advance(std::chrono::seconds(1));
  EXPECT_LT(m_db->statistics().log_segments, segments);
}

TEST_F(ReadSegmentTest, WithoutTheRuleItIsWrittenAgain) {
  VTKV_NEEDS_MUTATIONS();
  const ScopedMutation broken(Mutation::read_segment_recycled);
  EXPECT_NE(read_after_the_log_went_round(), "old");
}

}  // namespace
}  // namespace vtkv
