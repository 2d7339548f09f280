// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/object/parts_in_doubt.h"

#include <vector>

#include <gtest/gtest.h>

namespace swimstore {
namespace {

const std::vector<std::string> kRow{"row"}, kOther{"rox"};

TEST(PartsInDoubt, ARemovalIsInDoubtUntilItIsDurable) {
  PartsInDoubt parts;
  parts.removed(1, kRow);
  EXPECT_TRUE(parts.is_removed_elsewhere(2, "row"));
  EXPECT_FALSE(parts.is_removed_elsewhere(1, "row"));
  EXPECT_FALSE(parts.is_removed_elsewhere(2, "ro"));
  EXPECT_FALSE(parts.is_removed_elsewhere(2, "row "));
  parts.removals_durable(1, kRow);
  EXPECT_FALSE(parts.is_removed_elsewhere(2, "row"));
}

TEST(PartsInDoubt, OfTwoRemovalsBothHaveToBeDurable) {
  PartsInDoubt parts;
  parts.removed(1, kRow);
  parts.removed(1, kRow);
  parts.removed(3, kRow);
  parts.removals_durable(1, kRow);
  EXPECT_TRUE(parts.is_removed_elsewhere(3, "row"));
  parts.removals_durable(1, kRow);
  EXPECT_FALSE(parts.is_removed_elsewhere(3, "row"));
  EXPECT_TRUE(parts.is_removed_elsewhere(1, "row"));
}

TEST(PartsInDoubt, ARangeIsListedOfAllCubes) {
  PartsInDoubt parts;
  parts.removed(0, kRow);
  parts.removed(2, kOther);
  std::set<std::string> found;
  parts.list_removed("row", "rox", &found);
  EXPECT_EQ(found, (std::set<std::string>{"row"}));
  parts.list_removed("a", "z", &found);
  EXPECT_EQ(found, (std::set<std::string>{"row", "rox"}));
}

TEST(PartsInDoubt, AnObjectIsDurableUntilItChanges) {
  PartsInDoubt parts;
  EXPECT_FALSE(parts.is_durable(7));
  parts.object_durable(7);
  EXPECT_TRUE(parts.is_durable(7));
  parts.object_changes(7);
  EXPECT_FALSE(parts.is_durable(7));
}

}  // namespace
}  // namespace swimstore
