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

// The tree may count blocks of a slot that were never written: the slot is larger than what fills it.
TEST(SlotCensusTest, BlocksThatWereNeverWrittenHaveNoReferences) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 3, true, 3)));
  EXPECT_EQ("", add(census, extent(0, 3, true, 3)));
  census.add_counts({2, 7}, 0, {2, 2, 2, 5});
  const SlotCensus::Entry& entry = census.entries().begin()->second;
  EXPECT_EQ(0u, entry.found_of(3));
  EXPECT_FALSE(entry.has_more_than_kept());
  EXPECT_TRUE(entry.has_fewer_than_kept());
  EXPECT_EQ((SlotReferences::Counts{2, 2, 2, 0}), entry.counts());
}

TEST(SlotCensusTest, WhatWasNeverWrittenLeaksOnlyWhereASlotIsSplit) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 2, false, 3)));
  const SlotBlocks owned = SlotBlocks::all({2, 7});
  EXPECT_EQ(census.unreferenced(owned, false), (std::vector<SlotBlocks>{{{2, 7}, 2, 1, 3}}));
  EXPECT_EQ(census.unreferenced(owned, true), (std::vector<SlotBlocks>{{{2, 7}, 2, 2, 4}}));
  EXPECT_EQ(census.unreferenced(SlotBlocks::all({2, 8}), false), std::vector<SlotBlocks>{SlotBlocks::all({2, 8})});
}

TEST(SlotCensusTest, ExtentsMustAgreeOnWhatWasWritten) {
  SlotCensus census;
  EXPECT_EQ("", add(census, extent(0, 1, false, 4)));
  EXPECT_NE("", add(census, extent(1, 1, false, 3)));
}

}  // namespace swimstore
