// SPDX-License-Identifier: LGPL-2.1-or-later
// Every structure of a small store damaged, sector by sector: what is read is right, or an error of what was hit.
// swimstore_crash_explorer --damage --long looks at every sector.

#include <gtest/gtest.h>

#include "global/global_context.h"
#include "swimstore/testing/store_damage.h"

namespace swimstore {

class StoreDamageTest : public testing::TestWithParam<uint64_t> {};

TEST_P(StoreDamageTest, NoSectorGivesWrongDataOrHarmsAnotherObject) {
  StoreDamage damage(g_ceph_context, GetParam(), 96);
  EXPECT_EQ(damage.run(), "");
  std::printf("%s", damage.table().c_str());
  const auto outcomes = [&](const char* structure) { return damage.tallies().at(structure).outcomes; };
  EXPECT_GT(outcomes("superblock")[DamageTally::right], 0u);  // its other copy serves
  EXPECT_GT(outcomes("slots")[DamageTally::read_error], 0u);
  EXPECT_GT(outcomes("log segments")[DamageTally::refused], 0u);
  EXPECT_GT(outcomes("tree")[DamageTally::read_error] + outcomes("tree")[DamageTally::refused], 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoreDamageTest, testing::Values(1, 2, 3));

}  // namespace swimstore
