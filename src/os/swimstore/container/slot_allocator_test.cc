// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/slot_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace swimstore {
namespace {

constexpr uint64_t kChunkSlots = 16;

SlotAllocator with_chunks(uint64_t chunks) {
  SlotAllocator slots(0, kChunkSlots);
  slots.extend(chunks);
  for (uint64_t i = 0; i < chunks; i++) {
    slots.back(i);
  }
  return slots;
}

TEST(SlotAllocator, GivesNeighboursOneAfterAnother) {
  SlotAllocator slots = with_chunks(1);
  bool primed = true;
  for (uint64_t i = 0; i < kChunkSlots; i++) {
    EXPECT_EQ(slots.take(&primed), i);
    EXPECT_FALSE(primed);
  }
  EXPECT_EQ(slots.take(&primed), SlotAllocator::npos);
}

TEST(SlotAllocator, PrefersPrimedSlots) {
  SlotAllocator slots = with_chunks(1);
  slots.set_primed(9);
  bool primed = false;
  EXPECT_EQ(slots.take(&primed), 9u);
  EXPECT_TRUE(primed);
  slots.put_back(9);
  EXPECT_EQ(slots.take(&primed), 9u);
}

TEST(SlotAllocator, GivesTheVerySlotThatIsAskedForOnce) {
  SlotAllocator slots = with_chunks(1);
  EXPECT_TRUE(slots.take_this(5));
  EXPECT_FALSE(slots.take_this(5));
  EXPECT_TRUE(slots.set_owned(5, true).ok());
  EXPECT_EQ(slots.next_owned(0), 5u);
  EXPECT_EQ(slots.next_owned(6), SlotAllocator::npos);
  bool primed = true;
  for (uint64_t i = 0; i < kChunkSlots - 1; i++) {
    EXPECT_NE(slots.take(&primed), 5u);
  }
}

TEST(SlotAllocator, WithholdsOnlyAfterClearingPrimedBits) {
  SlotAllocator slots = with_chunks(2);
  for (uint64_t slot = 16; slot < 32; slot++) {
    slots.set_primed(slot);
  }
  while (slots.next_changed_page(0) != SlotAllocator::npos) {
    slots.take_page(0);
  }
  EXPECT_EQ(slots.find_whole_free_from_end(2), 1u);
  EXPECT_TRUE(slots.withhold(1));
  EXPECT_EQ(slots.primed_available(), 0u);
  EXPECT_EQ(slots.available(), kChunkSlots);
  ASSERT_EQ(slots.next_changed_page(0), 0u);
  EXPECT_EQ(slots.take_page(0).primed[0], 0u);
  slots.give_back(1);
  EXPECT_EQ(slots.primed_available(), kChunkSlots);
  EXPECT_EQ(slots.take_page(0).primed[0], 0xffff0000u);
  EXPECT_TRUE(slots.withhold(1));
  slots.dropped(1);
  EXPECT_EQ(slots.find_unbacked(), 1u);
  slots.back(1);
  EXPECT_EQ(slots.primed_available(), 0u);
  EXPECT_EQ(slots.available(), 2 * kChunkSlots);
}

TEST(SlotAllocator, RecoversPagesAndWhatCameAfterThem) {
  SlotAllocator before = with_chunks(3);
  bool primed = false;
  for (int i = 0; i < 5; i++) {
    EXPECT_TRUE(before.set_owned(before.take(&primed), true).ok());
  }
  before.set_primed(20);
  const AllocationPage page = before.take_page(0);

  SlotAllocator after(0, kChunkSlots);
  after.extend(3);
  ASSERT_TRUE(after.load(page).ok());
  EXPECT_TRUE(after.set_owned(7, true).ok());
  EXPECT_TRUE(after.set_owned(0, false).ok());
  after.finish_recovery(std::vector<bool>(after.chunks()));
  EXPECT_EQ(after.owned(), 5u);
  EXPECT_TRUE(after.is_available(0));
  EXPECT_FALSE(after.is_available(7));
  EXPECT_TRUE(after.is_primed(20));
  // The third chunk held nothing that proves that the host still holds its space.
  EXPECT_EQ(after.find_unbacked(), 2u);
  EXPECT_EQ(after.available(), 2 * kChunkSlots - 5);
}

TEST(SlotAllocator, RefusesALogThatContradictsIt) {
  SlotAllocator slots(0, kChunkSlots);
  slots.extend(1);
  EXPECT_TRUE(slots.set_owned(3, false).is_corruption());
  EXPECT_TRUE(slots.set_owned(3, true).ok());
  EXPECT_TRUE(slots.set_owned(3, true).is_corruption());
  EXPECT_TRUE(slots.set_owned(kChunkSlots, true).is_corruption());
  AllocationPage page;
  page.slots = 17;
  page.owned[0] = 1u << 16;
  EXPECT_TRUE(slots.load(page).is_corruption());
  page.owned[0] = 0;
  page.primed[0] = 1u << 16;
  EXPECT_TRUE(slots.load(page).is_corruption());
}

// Chunks of 16 slots: four share a word.
TEST(SlotAllocator, QuarantinedSlotsAreBusyFromTheBeginning) {
  SlotAllocator slots(0, 16);
  slots.extend(3);
  slots.quarantine(17);   // nobody's
  slots.quarantine(20);   // owned, too
  slots.quarantine(50);   // of a chunk that is to come
  EXPECT_TRUE(slots.set_owned(20, true).ok());
  slots.finish_recovery({true, true, false});
  EXPECT_EQ(slots.available(), 30u);
  EXPECT_EQ(slots.whole_free_chunks(), 1u);
  EXPECT_FALSE(slots.is_available(17));
  EXPECT_TRUE(slots.is_available(16));
  slots.back(2);
  EXPECT_EQ(slots.available(), 46u);
  slots.extend(1);
  slots.back(3);
  EXPECT_EQ(slots.available(), 61u);
  EXPECT_FALSE(slots.is_available(50));
  EXPECT_EQ(slots.whole_free_chunks(), 2u);
}

TEST(SlotAllocator, APageSaysNothingOfSlotsThatCameAfterIt) {
  SlotAllocator slots(0, 16);
  slots.extend(6);
  slots.assume_primed(96);
  AllocationPage page;
  page.slots = 80;
  page.owned[1] = 1;
  ASSERT_TRUE(slots.load(page).ok());
  for (uint64_t slot = 0; slot < 96; slot++) {
    EXPECT_EQ(slots.is_primed(slot), slot >= 80) << slot;
  }
  slots.finish_recovery({true, true, true, true, true, true});
  EXPECT_EQ(slots.owned(), 1u);
  EXPECT_FALSE(slots.is_available(64));
  EXPECT_EQ(slots.primed_available(), 16u);
}

// The crash explorer found it: the file had grown, a checkpoint had told, and nothing had synced the file.
TEST(SlotAllocator, AFileThatGrewNeedNotHaveGrownForGood) {
  SlotAllocator slots(0, kChunkSlots);
  slots.extend(1);
  AllocationPage page;
  page.slots = 2 * kChunkSlots;
  page.owned[0] = 1;
  ASSERT_TRUE(slots.load(page).ok());
  slots.finish_recovery(std::vector<bool>(slots.chunks()));
  EXPECT_EQ(slots.owned(), 1u);
  EXPECT_EQ(slots.available(), kChunkSlots - 1);
}

// Every slot has one state in the model; the allocator must agree after each random step.
TEST(SlotAllocator, AgreesWithAModel) {
  enum class State { available, busy, owned };
  struct Slot {
    State state = State::available;
    bool primed = false;
  };
  for (uint64_t seed = 1; seed <= 20; seed++) {
    std::mt19937_64 random(seed);
    SlotAllocator slots(2, kChunkSlots);
    std::map<uint64_t, Slot> model;
    std::vector<uint64_t> withheld;
    const auto pick = [&](State state) {
      std::vector<uint64_t> found;
      for (const auto& [slot, it] : model) {
        if (it.state == state) {
          found.push_back(slot);
        }
      }
      return found.empty() ? SlotAllocator::npos : found[random() % found.size()];
    };
    for (int step = 0; step < 2000; step++) {
      uint64_t slot = 0;
      bool primed = false;
      switch (random() % 8) {
        case 0:
          if (slots.chunks() < 20) {
            slots.extend(1);
            slots.back(slots.chunks() - 1);
            for (uint64_t i = slots.slots() - kChunkSlots; i < slots.slots(); i++) {
              model[i] = {};
            }
          }
          break;
        case 1:
        case 2:
          slot = slots.take(&primed);
          if (slot == SlotAllocator::npos) {
            ASSERT_EQ(pick(State::available), SlotAllocator::npos);
          } else {
            ASSERT_EQ(model[slot].state, State::available);
            ASSERT_EQ(model[slot].primed, primed);
            model[slot].state = State::busy;
          }
          break;
        case 3:
          if ((slot = pick(State::busy)) != SlotAllocator::npos) {
            slots.put_back(slot);
            model[slot].state = State::available;
          }
          break;
        case 4:
          if ((slot = pick(State::busy)) != SlotAllocator::npos) {
            ASSERT_TRUE(slots.set_owned(slot, true).ok());
            model[slot].state = State::owned;
          }
          break;
        case 5:
          if ((slot = pick(State::owned)) != SlotAllocator::npos) {
            ASSERT_TRUE(slots.set_owned(slot, false).ok());
            model[slot].state = State::busy;
          }
          break;
        case 6:
          if ((slot = pick(static_cast<State>(random() % 3))) != SlotAllocator::npos) {
            slots.set_primed(slot);
            model[slot].primed = true;
          }
          break;
        case 7: {
          const uint64_t chunk = slots.find_whole_free_from_end(slots.chunks());
          if (chunk != SlotAllocator::npos) {
            slots.withhold(chunk);
            const bool punched = random() % 2 == 0;
            if (punched) {
              slots.dropped(chunk);
              ASSERT_EQ(slots.find_unbacked(), chunk);
              slots.back(chunk);
            } else {
              slots.give_back(chunk);
            }
            for (uint64_t i = chunk * kChunkSlots; i < (chunk + 1) * kChunkSlots; i++) {
              ASSERT_EQ(model[i].state, State::available);
              model[i].primed = model[i].primed && !punched;
            }
          }
          break;
        }
      }
      uint64_t available = 0;
      uint64_t owned = 0;
      for (const auto& [i, it] : model) {
        ASSERT_EQ(slots.is_available(i), it.state == State::available);
        ASSERT_EQ(slots.is_owned(i), it.state == State::owned);
        ASSERT_EQ(slots.is_primed(i), it.primed);
        available += it.state == State::available;
        owned += it.state == State::owned;
      }
      ASSERT_EQ(slots.available(), available);
      ASSERT_EQ(slots.owned(), owned);
    }
  }
}

}  // namespace
}  // namespace swimstore
