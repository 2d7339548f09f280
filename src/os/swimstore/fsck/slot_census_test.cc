#include "swimstore/fsck/slot_census.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

Extent extent(uint32_t slot_block, uint8_t count, bool shared = false, uint32_t written = 4) {
  return {.count = count, .shared = shared, .slot = {.size_class = 2, .index = 7}, .slot_block = slot_block,
          .slot_written_blocks = written};
}

std::string add(SlotCensus& census, const Extent& one) { return census.add(one, 1); }

}  // namespace

TEST(SlotCensusTest, NeighboursInASlotAreFine) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 2)));
  EXPECT_EQ("", add(census, extent(2, 2)));
  EXPECT_EQ(4u, census.entries().begin()->second.references);
}

TEST(SlotCensusTest, TwoOwnersOfOneBlockAreNot) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 2)));
  EXPECT_NE("", add(census, extent(1, 1)));
}

TEST(SlotCensusTest, SharedBlocksMayHaveManyOwners) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 4, true)));
  EXPECT_EQ("", add(census, extent(0, 4, true)));
  EXPECT_EQ(8u, census.entries().begin()->second.references);
}

TEST(SlotCensusTest, ExtentsMustAgreeOnWhatWasWritten) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 1, false, 4)));
  EXPECT_NE("", add(census, extent(1, 1, false, 3)));
}

}  // namespace swimstore
