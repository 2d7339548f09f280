// Values that stay in the log, and the cache they are read through.

#include <gtest/gtest.h>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

constexpr size_t kValueBytes = 3000;

class DbValuesTest : public testing::Test {
 protected:
  void SetUp() override {
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.value_separation_bytes = 100;
    m_options.space_amplification_target = 0;
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    open();
    for (int i = 0; i < kKeys; ++i) {
      WriteBatch batch;
      batch.put(key(i), value(i));
      ASSERT_TRUE(m_db->write(std::move(batch)).ok());
    }
    ASSERT_TRUE(m_db->flush().ok());
    m_env.run_until_idle();
  }
  void open() {
    m_db.reset();
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  static std::string key(int i) { return "key" + std::to_string(1000 + i); }
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
  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
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

}  // namespace
}  // namespace vtkv
