// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tree/run_version.h"

#include <gtest/gtest.h>

#include <random>

#include "vtkv/testing/tree_fixture.h"

namespace vtkv {
namespace {

class AscendingLookupsTest : public TreeFixture {
 protected:
  static constexpr int kKeys = 2000;

  void SetUp() override {
    m_options.geometry.log_segment_bytes = 64 << 10;
    make();
  }
  static std::string key(uint64_t i) { return "key" + std::to_string(100000 + i); }
  // Runs of every density, with tombstones of both kinds, and with versions that go on over block ends.
  void fill() {
    constexpr uint64_t kSteps[] = {1, 3, 50};
    std::vector<SequenceNumber> snapshots;
    for (const uint64_t step : kSteps) {
      MemTable table;
      for (uint64_t i = 0; i < kKeys; i += step) {
        const uint64_t versions = i % 500 == 0 ? 100 : 1;
        for (uint64_t version = 0; version < versions; ++version) {
          snapshots.push_back(++m_sequence);
          table.put(m_sequence, key(i), std::to_string(m_sequence) + std::string(80, 'v'));
        }
        if (i % 7 == 0) {
          table.remove(++m_sequence, key(i));
        }
      }
      table.remove_range(++m_sequence, key(kKeys / 2 + step * 10), key(kKeys / 2 + step * 20));
      ASSERT_TRUE(m_tree->flush(table, {m_sequence, 1, 1, m_sequence * 4096, 7}, snapshots).ok());
    }
  }
};

TEST_F(AscendingLookupsTest, FindWhatSingleLookupsFind) {
  ASSERT_NO_FATAL_FAILURE(fill());
  const std::shared_ptr<const Version> version = m_tree->current();
  std::mt19937_64 random(1);
  for (const uint64_t stride : {1, 2, 40, 700}) {
    const std::unique_ptr<AscendingLookups> lookups = version->ascending_lookups();
    for (uint64_t i = 0; i < kKeys + 100; i += 1 + random() % (2 * stride)) {
      for (const std::string& wanted : {key(i), key(i), key(i) + "x"}) {
        Lookup expected, found;
        std::string expected_value, found_value;
        ASSERT_TRUE(version->get(wanted, UINT64_MAX, &expected, &expected_value).ok());
        ASSERT_TRUE(lookups->get(wanted, &found, &found_value).ok());
        ASSERT_EQ(found, expected) << wanted;
        if (expected == Lookup::found) {
          ASSERT_EQ(found_value, expected_value) << wanted;
        }
      }
    }
  }
}

}  // namespace
}  // namespace vtkv
