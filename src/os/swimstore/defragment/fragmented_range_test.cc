// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/defragment/fragmented_range.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

constexpr unsigned kLargest = kSizeClasses - 1;

Extent extent(SlotAddress slot, uint32_t slot_block, uint8_t count) {
  return {.count = count, .slot = slot, .slot_block = slot_block, .slot_written_blocks = slot_block + count};
}

std::vector<FragmentedRange> ranges(const std::vector<std::pair<uint64_t, Extent>>& extents) {
  RangeFinder finder;
  for (const auto& [block, one] : extents) {
    finder.add(block, one);
  }
  return finder.finish();
}

}  // namespace

TEST(FragmentedRangeTest, ExtentsThatAreNeighboursAtTheDeviceAreOnePiece) {
  // One slot of 128 KiB over two shards, and a slot beside another one of its size.
  EXPECT_EQ((std::vector<FragmentedRange>{{.first = 16, .count = 34, .pieces = 2, .best_pieces = 2}}),
            ranges({{16, extent({5, 3}, 0, 16)},
                    {32, extent({5, 3}, 16, 16)},
                    {48, extent({0, 7}, 0, 1)},
                    {49, extent({0, 8}, 0, 1)}}));
}

TEST(FragmentedRangeTest, FragmentsOfASlotLieInItsContainer) {
  const SlotAddress half{4, 6, 1}, next_half{4, 7, 1}, whole_one_of_that_size{4, 8, 0};
  EXPECT_EQ(1u, ranges({{0, extent(half, 0, 16)}, {16, extent(next_half, 0, 16)}}).front().pieces);
  EXPECT_EQ(2u, ranges({{0, extent(next_half, 0, 16)}, {16, extent(whole_one_of_that_size, 0, 16)}}).front().pieces);
}

TEST(FragmentedRangeTest, AHoleEndsARange) {
  EXPECT_EQ((std::vector<FragmentedRange>{{.first = 0, .count = 2, .pieces = 2, .best_pieces = 1},
                                          {.first = 3, .count = 1, .pieces = 1, .best_pieces = 1}}),
            ranges({{0, extent({0, 1}, 0, 1)}, {1, extent({0, 5}, 0, 1)}, {3, extent({0, 9}, 0, 1)}}));
  EXPECT_TRUE(ranges({}).empty());
}

TEST(FragmentedRangeTest, ItIsWorthItFromHalfAsManyBytesInSeeksOn) {
  const uint64_t blocks = slot_bytes(kLargest) / kBlockBytes;
  FragmentedRange range{.first = 0, .count = blocks, .pieces = 33, .best_pieces = 1};
  EXPECT_TRUE(range.is_worth_it());  // 32 seeks are worth 2 MiB
  range.pieces = 32;
  EXPECT_FALSE(range.is_worth_it());
  EXPECT_TRUE((FragmentedRange{.first = 0, .count = 2, .pieces = 2, .best_pieces = 1}).is_worth_it());
}

// 20 KiB take two slots when they are written anew: nothing is gained.
TEST(FragmentedRangeTest, WhatANewWriteWouldCutAsMuchStays) {
  const auto found = ranges({{0, extent({2, 1}, 0, 4)}, {4, extent({0, 9}, 0, 1)}});
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(found.front().pieces, found.front().best_pieces);
  EXPECT_FALSE(found.front().is_worth_it());
}

}  // namespace swimstore
