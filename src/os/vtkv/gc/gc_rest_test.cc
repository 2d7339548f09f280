// SPDX-License-Identifier: LGPL-2.1-or-later
// When does the collector of the value log stop?

#include <gtest/gtest.h>

#include <random>

#include "vtkv/testing/at_rest.h"
#include "vtkv/testing/values_fixture.h"

namespace vtkv {
namespace {

class GcRestTest : public ValuesFixture {
 protected:
  GcRestTest() {
    m_options.value_separation_bytes = 64;
    m_options.space_amplification_target = 2.0;
    m_options.memtable_bytes = 64 << 10;
  }
  std::string long_key(int i) const {
    const std::string number = std::to_string(100000 + i);
    return number + std::string(m_key_bytes - number.size(), 'k');
  }
  void put(int i, char version) {
    WriteBatch batch;
    batch.put(long_key(i), std::string(m_value_bytes, version));
    ASSERT_TRUE(m_db->write(std::move(batch), {.sync = m_synced}).ok());
  }
  void put_all(char version) {
    for (int i = 0; i < m_keys; ++i) {
      ASSERT_NO_FATAL_FAILURE(put(i, version));
    }
  }
  // Of all keys about this part, in no order.
  void overwrite(double part, char version) {
    for (int i = 0; i < static_cast<int>(part * m_keys); ++i) {
      ASSERT_NO_FATAL_FAILURE(put(static_cast<int>(m_random() % static_cast<unsigned>(m_keys)), version));
    }
  }
  uint64_t live_bytes() const { return static_cast<uint64_t>(m_keys) * (m_key_bytes + m_value_bytes); }

  std::mt19937 m_random{1};
  int m_keys = 8000;
  size_t m_key_bytes = 40;
  size_t m_value_bytes = 100;
  bool m_synced = false;
};

// What a relocated value takes in the log is its key, too: segments full of such are not half empty.
TEST_F(GcRestTest, ValuesThatAreSmallBesideTheirKeysAreMovedOnce) {
  open();
  ASSERT_NO_FATAL_FAILURE(put_all('a'));
  ASSERT_NO_FATAL_FAILURE(overwrite(1, 'b'));
  EXPECT_EQ(unrest(&m_env, *m_db), "");
  const DBStatistics statistics = m_db->statistics();
  EXPECT_GT(statistics.gc_freed_segments, 0u);
  EXPECT_LE(statistics.gc_moved_bytes, 2 * live_bytes());
}

}  // namespace
}  // namespace vtkv
