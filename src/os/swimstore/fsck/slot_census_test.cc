#include "swimstore/fsck/slot_census.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

Extent extent(uint32_t slot_block, uint8_t count, bool shared = false, uint32_t written = 4) {
  return {.count = count, .shared = shared, .slot = {.size_class = 2, .index = 7}, .slot_block = slot_block,
          .slot_written_blocks = written};
}

}  // namespace

TEST(SlotCensusTest, NeighboursInASlotAreFine) {
  SlotCensus census;
  EXPECT_EQ("", census.add(extent(0, 2)));
  EXPECT_EQ("", census.add(extent(2, 2)));
  EXPECT_EQ(4u, census.entries().begin()->second.references);
}

TEST(SlotCensusTest, TwoOwnersOfOneBlockAreNot) {
  SlotCensus census;
  EXPECT_EQ("", census.add(extent(0, 2)));
  EXPECT_NE("", census.add(extent(1, 1)));
}

TEST(SlotCensusTest, SharedBlocksMayHaveManyOwners) {
  SlotCensus census;
  EXPECT_EQ("", census.add(extent(0, 4, true)));
  EXPECT_EQ("", census.add(extent(0, 4, true)));
  EXPECT_EQ(8u, census.entries().begin()->second.references);
}

TEST(SlotCensusTest, BlocksThatWereNeverWrittenCannotBeOwned) {
  SlotCensus census;
  EXPECT_NE("", census.add(extent(3, 2)));
  EXPECT_NE("", census.add(extent(0, 1, false, 5)));
}

TEST(SlotCensusTest, ExtentsMustAgreeOnWhatWasWritten) {
  SlotCensus census;
  EXPECT_EQ("", census.add(extent(0, 1, false, 4)));
  EXPECT_NE("", census.add(extent(1, 1, false, 3)));
}

}  // namespace swimstore
