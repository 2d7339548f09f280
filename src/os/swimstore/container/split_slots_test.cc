// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/split_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace swimstore {
namespace {

constexpr unsigned kContainer = 10;
constexpr uint32_t kBlocks = slot_blocks(kContainer);

// A slot whose blocks are all busy, but for what is put back.
SplitSlots with_free(const std::vector<std::pair<uint32_t, uint32_t>>& free, unsigned container = kContainer) {
  SplitSlots slots(container);
  slots.split(7, 0, 0);
  for (const auto& [first, count] : free) {
    EXPECT_TRUE(slots.put_back(7, first, count));
  }
  return slots;
}

uint32_t take(SplitSlots& slots, unsigned size_class, uint32_t blocks) {
  uint64_t slot = 0;
  uint32_t first = 0;
  EXPECT_TRUE(slots.take(size_class, blocks, SplitSlots::Wanted::any, &slot, &first));
  EXPECT_EQ(slot, 7u);
  return first;
}

TEST(SplitSlots, FragmentsLieAtMultiplesOfTheirSize) {
  SplitSlots slots = with_free({{1, 6}});  // 1, 2 and 3, 4 and 5, 6
  EXPECT_EQ(slots.fragments(0), 6u);
  EXPECT_EQ(slots.fragments(1), 2u);
  EXPECT_EQ(slots.fragments(2), 0u);
  uint64_t slot = 0;
  uint32_t first = 0;
  EXPECT_FALSE(slots.take(2, 4, SplitSlots::Wanted::any, &slot, &first));
  EXPECT_EQ(take(slots, 1, 2), 2u);
  EXPECT_EQ(take(slots, 1, 2), 4u);
}

TEST(SplitSlots, SmallFragmentsAreTakenBeforeLargerOnesAreBroken) {
  SplitSlots slots = with_free({{0, 4}, {9, 1}});
  EXPECT_EQ(take(slots, 0, 1), 9u);
  EXPECT_EQ(take(slots, 0, 1), 0u);
}

TEST(SplitSlots, SlotsWithSmallFragmentsComeFirst) {
  SplitSlots slots = with_free({{0, 512}});
  slots.split(8, 0, 0);
  EXPECT_TRUE(slots.put_back(8, 3, 1));
  uint64_t slot = 0;
  uint32_t first = 0;
  ASSERT_TRUE(slots.take(0, 1, SplitSlots::Wanted::any, &slot, &first));
  EXPECT_EQ(slot, 8u);
  EXPECT_EQ(first, 3u);
}

TEST(SplitSlots, WhatIsNotNeededOfAFragmentStaysFree) {
  SplitSlots slots = with_free({{8, 8}});
  EXPECT_EQ(take(slots, 3, 5), 8u);
  EXPECT_EQ(slots.fragments(0), 3u);
  EXPECT_EQ(take(slots, 1, 2), 14u);
}

TEST(SplitSlots, FragmentsLargerThanAWordOfBits) {
  SplitSlots slots = with_free({{256, 256}});
  for (unsigned size_class = 0; size_class <= 8; ++size_class) {
    EXPECT_EQ(slots.fragments(size_class), 256u >> size_class);
  }
  EXPECT_EQ(slots.fragments(9), 0u);
  EXPECT_EQ(take(slots, 7, 128), 256u);
  EXPECT_EQ(take(slots, 7, 100), 384u);
  EXPECT_EQ(slots.fragments(0), 28u);
}

TEST(SplitSlots, NeighboursFindTogetherAgain) {
  SplitSlots slots = with_free({{0, 64}});
  std::vector<uint32_t> taken;
  for (int i = 0; i < 64; ++i) {
    taken.push_back(take(slots, 0, 1));
  }
  EXPECT_EQ(slots.free_blocks(), 0u);
  std::shuffle(taken.begin(), taken.end(), std::mt19937(3));
  for (const uint32_t block : taken) {
    EXPECT_TRUE(slots.put_back(7, block, 1));
  }
  EXPECT_EQ(slots.fragments(6), 1u);
}

TEST(SplitSlots, ASlotWithNothingBusyIsToBeUnited) {
  SplitSlots slots(2);
  slots.split(3, 4, 0);
  slots.set_owned(3, 0, 4, false);
  EXPECT_TRUE(slots.put_back(3, 0, 3));
  EXPECT_FALSE(slots.put_back(3, 3, 1));
  slots.unite(3);
  EXPECT_FALSE(slots.contains(3));
  EXPECT_EQ(slots.free_blocks(), 0u);
  uint64_t slot = 0;
  uint32_t first = 0;
  EXPECT_FALSE(slots.take(0, 1, SplitSlots::Wanted::any, &slot, &first));
}

TEST(SplitSlots, PrimedFragmentsComeFirstWhereTheyAreWanted) {
  SplitSlots slots = with_free({{0, 4}, {9, 1}});
  slots.set_primed(7, 2, 2, true);
  EXPECT_EQ(slots.primed_fragments(0), 2u);
  EXPECT_EQ(slots.primed_fragments(1), 1u);
  EXPECT_EQ(slots.primed_fragments(2), 0u);
  uint64_t slot = 0;
  uint32_t first = 0;
  EXPECT_FALSE(slots.take(2, 4, SplitSlots::Wanted::primed, &slot, &first));
  ASSERT_TRUE(slots.take(0, 1, SplitSlots::Wanted::primed_first, &slot, &first));
  EXPECT_EQ(first, 2u);
  EXPECT_TRUE(slots.is_primed(7, first, 1));
  EXPECT_EQ(take(slots, 0, 1), 3u) << "what is left of a fragment";
  EXPECT_FALSE(slots.take(0, 1, SplitSlots::Wanted::primed, &slot, &first));
  ASSERT_TRUE(slots.take(0, 1, SplitSlots::Wanted::primed_first, &slot, &first));
  EXPECT_EQ(first, 9u);
  EXPECT_FALSE(slots.is_primed(7, first, 1));
}

TEST(SplitSlots, ABlockStaysPrimedWhoeverHasIt) {
  SplitSlots slots(2);
  slots.split(3, 4, 2);
  slots.set_owned(3, 0, 4, false);
  EXPECT_TRUE(slots.put_back(3, 0, 3));
  EXPECT_EQ(slots.primed_fragments(0), 2u);
  EXPECT_TRUE(slots.take_these(3, 0, 2));
  EXPECT_EQ(slots.primed_fragments(0), 0u);
  EXPECT_TRUE(slots.put_back(3, 0, 2));
  EXPECT_EQ(slots.primed_fragments(1), 1u);
  slots.set_primed(3, 1, 1, false);  // punched
  EXPECT_EQ(slots.primed_fragments(0), 1u);
  EXPECT_EQ(slots.primed_fragments(1), 0u);
}

TEST(SplitSlots, TakesTheVeryBlocksThatAreAskedForOnce) {
  SplitSlots slots = with_free({{10, 10}});
  EXPECT_FALSE(slots.take_these(7, 9, 2));
  EXPECT_TRUE(slots.take_these(7, 10, 2));
  EXPECT_FALSE(slots.take_these(7, 11, 1));
}

TEST(SplitSlots, ACheckpointBringsBackWhoOwnsWhat) {
  SplitSlots before(kContainer);
  before.split(5, 700, 0);
  before.set_owned(5, 100, 50, false);
  const SplitSlots::Changed changed = before.take_changed();
  EXPECT_EQ(changed.slots, std::vector<uint64_t>{5});
  EXPECT_TRUE(before.take_changed().slots.empty());
  SplitSlotRecord record;
  ASSERT_TRUE(SplitSlotRecord::decode(SplitSlotRecord::encode_key(kContainer, 5),
                                      SplitSlotRecord::encode_value(kContainer, changed.owned_of(0)), &record)
                  .ok());
  SplitSlots after(kContainer);
  after.load(record, false);
  after.finish_recovery();
  EXPECT_EQ(after.owned_blocks(), 650u);
  EXPECT_EQ(after.free_blocks(), kBlocks - 650);  // nothing waits any more
  EXPECT_EQ(after.owned_runs(5), (std::vector<std::pair<uint32_t, uint32_t>>{{0, 100}, {150, 550}}));
  EXPECT_TRUE(after.take_changed().slots.empty());
}

TEST(SplitSlots, ACheckpointForgetsWhatHasNoOwner) {
  SplitSlots slots(kContainer);
  for (const uint64_t slot : {9, 4, 70}) {
    slots.split(slot, 1, 0);
  }
  slots.set_owned(4, 0, 1, false);
  slots.set_owned(9, 0, 1, false);
  slots.unite(9);
  const SplitSlots::Changed changed = slots.take_changed();
  ASSERT_EQ(changed.slots, (std::vector<uint64_t>{4, 9, 70}));
  EXPECT_EQ(changed.owned_of(0)[0], 0u);
  EXPECT_EQ(changed.owned_of(1)[0], 0u);
  EXPECT_EQ(changed.owned_of(2)[0], 1u);
}

// Where the slot's number alone decides, it does: a simulated run is the same again.
TEST(SplitSlots, TheFirstOfEqualSlotsIsTaken) {
  SplitSlots slots(4);
  for (const uint64_t slot : {700, 3, 5000, 64}) {
    slots.split(slot, 0, 0);
    slots.put_back(slot, 2, 1);
  }
  for (const uint64_t expected : {3, 64, 700, 5000}) {
    uint64_t slot = 0;
    uint32_t first = 0;
    ASSERT_TRUE(slots.take(0, 1, SplitSlots::Wanted::any, &slot, &first));
    EXPECT_EQ(slot, expected);
  }
}

// An image that was written in large pieces and then overwritten at random: 16.8 million slots of 64 KiB for 1 TiB.
TEST(SplitSlots, ManyNeighboursTakeLittleMoreThanTheirBits) {
  constexpr uint64_t kSlots = 5000;
  for (unsigned container = 1; container < kSizeClasses; ++container) {
    SplitSlots slots(container);
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      slots.split(slot, slot_blocks(container), slot_blocks(container));
      slots.set_owned(slot, 0, 1, false);
      slots.put_back(slot, 0, 1);
    }
    EXPECT_LE(slots.memory_bytes() / kSlots, 3 * (slot_blocks(container) / 8) + 9) << "of class " << container;
  }
}

TEST(SplitSlots, NothingOfAQuarantinedSlotIsHandedOut) {
  SplitSlots slots(2);
  slots.quarantine(3);
  slots.split(3, 4, 0);
  slots.set_owned(3, 0, 4, false);
  EXPECT_TRUE(slots.put_back(3, 0, 2));
  uint64_t slot = 0;
  uint32_t first = 0;
  EXPECT_FALSE(slots.take(0, 1, SplitSlots::Wanted::any, &slot, &first));
  EXPECT_EQ(slots.free_blocks(), 0u);
  EXPECT_FALSE(slots.put_back(3, 2, 2));  // to be united all the same
}

// Against one bit a block.
TEST(SplitSlots, RandomUseMatchesAModel) {
  for (const unsigned container : {1u, 4u, 6u, 7u, 10u}) {
    const uint32_t blocks = slot_blocks(container);
    std::mt19937_64 random(container);
    SplitSlots slots(container);
    slots.split(0, 0, 0);
    slots.split(1, 0, 0);
    std::vector<std::vector<bool>> busy(2, std::vector<bool>(blocks, true));
    std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> taken = {{0, 0, blocks}, {1, 0, blocks - 1}};
    for (int step = 0; step < 4000; ++step) {
      if (!taken.empty() && random() % 2 == 0) {
        const size_t which = random() % taken.size();
        auto& [slot, first, count] = taken[which];
        const uint32_t slice = 1 + static_cast<uint32_t>(random() % count);
        if (std::count(busy[slot].begin(), busy[slot].end(), true) > static_cast<long>(slice)) {
          slots.put_back(slot, first, slice);
          std::fill_n(busy[slot].begin() + first, slice, false);
          first += slice;
          count -= slice;
        }
        if (count == 0) {
          taken.erase(taken.begin() + static_cast<long>(which));
        }
        continue;
      }
      const auto size_class = static_cast<unsigned>(random() % container);
      const uint32_t wanted =
          (slot_blocks(size_class) + 1) / 2 + static_cast<uint32_t>(random() % ((slot_blocks(size_class) + 1) / 2));
      uint64_t fragments = 0;
      for (const auto& slot : busy) {
        for (uint32_t at = 0; at < blocks; at += slot_blocks(size_class)) {
          fragments += std::count(slot.begin() + at, slot.begin() + at + slot_blocks(size_class), true) == 0;
        }
      }
      ASSERT_EQ(slots.fragments(size_class), fragments);
      uint64_t slot = 0;
      uint32_t first = 0;
      ASSERT_EQ(slots.take(size_class, wanted, SplitSlots::Wanted::any, &slot, &first), fragments > 0);
      if (fragments > 0) {
        ASSERT_EQ(first % slot_blocks(size_class), 0u);
        for (uint32_t block = first; block < first + slot_blocks(size_class); ++block) {
          ASSERT_FALSE(busy[slot][block]);
          busy[slot][block] = block < first + wanted;
        }
        taken.emplace_back(slot, first, wanted);
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
