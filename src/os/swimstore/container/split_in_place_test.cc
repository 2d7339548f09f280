// SPDX-License-Identifier: LGPL-2.1-or-later
// What dies of a large slot serves smaller writes, in place. Containers on a simulated host; the test plays the
// database's part.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "swimstore/container/container_set.h"
#include "swimstore/format/allocation_page.h"
#include "swimstore/format/split_slot.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::SequenceNumber;

constexpr uint64_t kKiB = 1024;
constexpr unsigned k64K = 4;
constexpr unsigned k256K = 6;

class SplitInPlaceTest : public testing::Test {
 protected:
  SplitInPlaceTest() : m_env({}) {
    m_options.chunk_bytes = 256 * kKiB;
    m_options.primed_ahead_bytes = 64 * kKiB;
    m_options.reserve_bytes = 64 * kKiB;
    check(ContainerSet::create(&m_env, "/containers", m_options));
    open();
  }
  ~SplitInPlaceTest() override { m_set.reset(); }

  static void check(const vtkv::Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }

  void open() {
    m_set.reset();
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    for (const char prefix : {kAllocationKeyPrefix, kSplitSlotKeyPrefix}) {
      for (const auto& [key, value] : m_entries) {
        if (key[0] == prefix) {
          check(prefix == kSplitSlotKeyPrefix ? m_set->load_split_slot(key, value) : m_set->load_page(key, value));
        }
      }
    }
    for (const AllocationDelta& delta : m_log) {
      check(m_set->replay(delta));
    }
    check(m_set->finish_recovery());
  }
  void checkpoint() {
    std::vector<vtkv::CheckpointEntry> entries;
    m_set->collect_pages(m_sequence, &entries);
    for (const auto& [key, value] : entries) {
      value ? void(m_entries[key] = *value) : void(m_entries.erase(key));
    }
    m_log.clear();
    m_set->checkpoint_durable(m_sequence);
  }

  std::vector<AllocatedSlot> allocate(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    const vtkv::Status status = m_set->allocate(bytes, &slots);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return slots;
  }
  void apply(AllocationDelta delta) {
    m_set->apply(++m_sequence, delta);
    m_log.push_back(std::move(delta));
  }
  void own(const std::vector<AllocatedSlot>& slots) {
    AllocationDelta delta;
    for (const AllocatedSlot& slot : slots) {
      delta.allocated.push_back(slot.blocks());
    }
    apply(std::move(delta));
  }
  // A slot with an owner, all of it written and primed.
  SlotAddress own_one(uint64_t bytes) {
    const std::vector<AllocatedSlot> slots = allocate(bytes);
    EXPECT_EQ(slots.size(), 1u);
    own(slots);
    m_set->mark_primed({slots[0].address});
    return slots[0].address;
  }
  // 200 of 256 KiB: not primed, since it is not written to its end.
  SlotAddress own_a_part() {
    const std::vector<AllocatedSlot> slots = allocate(200 * kKiB);
    EXPECT_EQ(slots.size(), 1u);
    own(slots);
    return slots[0].address;
  }
  void free_now(const SlotBlocks& blocks) {
    apply({.allocated = {}, .freed = {blocks}});
    m_set->set_reuse_horizon(m_sequence);
  }
  uint64_t entries_of_split_slots() const {
    return static_cast<uint64_t>(std::count_if(
        m_entries.begin(), m_entries.end(), [](const auto& entry) { return entry.first[0] == kSplitSlotKeyPrefix; }));
  }

  vtkv::SimEnv m_env;
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  SequenceNumber m_sequence = 0;
  std::map<std::string, std::string> m_entries;
  std::vector<AllocationDelta> m_log;
};

TEST_F(SplitInPlaceTest, AFragmentThatDiedServesASmallerWrite) {
  const SlotAddress slot = own_one(256 * kKiB);
  free_now({slot, 8, 4, 64});
  EXPECT_EQ(m_set->statistics().owned_bytes, 240 * kKiB);
  EXPECT_EQ(m_set->statistics().classes[k256K].split, 1u);
  const AllocatedSlot fragment = allocate(16 * kKiB)[0];
  EXPECT_EQ(fragment.address.whole(), slot);
  EXPECT_EQ(fragment.address.first_block(), 8u);
  EXPECT_EQ(fragment.address.byte_offset(), slot.byte_offset() + 8 * kBlockBytes);
  EXPECT_TRUE(fragment.primed);
  own({fragment});
  EXPECT_TRUE(m_set->is_owned(fragment.blocks()));
  EXPECT_EQ(m_set->statistics().owned_bytes, 256 * kKiB);
}

TEST_F(SplitInPlaceTest, NotBeforeTheHorizonReachesIt) {
  const SlotAddress slot = own_one(256 * kKiB);
  apply({.allocated = {}, .freed = {{slot, 8, 4, 64}}});
  EXPECT_TRUE(m_set->has_waiting());
  EXPECT_EQ(allocate(16 * kKiB)[0].address.split_levels, 0);
  m_set->set_reuse_horizon(m_sequence - 1);
  EXPECT_EQ(allocate(16 * kKiB)[0].address.split_levels, 0);
  m_set->set_reuse_horizon(m_sequence);
  EXPECT_FALSE(m_set->has_waiting());
  EXPECT_EQ(allocate(16 * kKiB)[0].address.whole(), slot);
}

TEST_F(SplitInPlaceTest, WhatWasNeverWrittenIsFreeOnceTheSlotIsSplit) {
  const std::vector<AllocatedSlot> slots = allocate(200 * kKiB);  // of 256
  own(slots);
  EXPECT_EQ(m_set->statistics().owned_bytes, 256 * kKiB);
  free_now({slots[0].address, 0, 1, 50});
  EXPECT_EQ(m_set->statistics().owned_bytes, 196 * kKiB);
  EXPECT_EQ(m_set->statistics().classes[k256K].split_free_blocks, 15u);
}

// It was durable before it could be freed.
TEST_F(SplitInPlaceTest, WhatAnOwnerWroteOfAnUnprimedSlotIsPrimed) {
  const SlotAddress slot = own_a_part();
  free_now({slot, 8, 4, 50});
  const AllocatedSlot fragment = allocate(16 * kKiB)[0];
  EXPECT_EQ(fragment.address.whole(), slot);
  EXPECT_TRUE(fragment.primed);
}

TEST_F(SplitInPlaceTest, WhatWasNeverWrittenIsNotPrimedAndComesLast) {
  const SlotAddress slot = own_a_part();
  free_now({slot, 0, 2, 50});
  std::vector<AllocatedSlot> taken;
  while (m_set->statistics().classes[k256K].split_free_blocks > 0) {
    taken.push_back(allocate(4 * kKiB)[0]);
  }
  EXPECT_GT(taken.size(), 16u) << "slots that are primed come before";
  for (size_t i = 0; i < taken.size(); i++) {
    const bool written = taken[i].address.split_levels == 0 || taken[i].address.first_block() < 50;
    EXPECT_EQ(taken[i].primed, written) << i;
    EXPECT_EQ(taken[i].address.whole() == slot, i < 2 || i >= taken.size() - 14) << i;
  }
}

TEST_F(SplitInPlaceTest, AfterAnOpenNothingOfAnUnprimedSlotIsPrimed) {
  const SlotAddress slot = own_a_part();
  free_now({slot, 8, 4, 50});
  checkpoint();
  open();
  free_now({slot, 16, 8, 50});
  std::vector<AllocatedSlot> taken;
  while (m_set->statistics().classes[k256K].split_free_blocks > 0) {
    taken.push_back(allocate(4 * kKiB)[0]);
  }
  for (const AllocatedSlot& fragment : taken) {
    EXPECT_EQ(fragment.primed, fragment.address.whole() != slot);
  }
}

TEST_F(SplitInPlaceTest, ASlotThatWasWrittenPieceByPieceIsPrimedWhenItIsWholeAgain) {
  const SlotAddress slot = own_a_part();
  free_now({slot, 0, 25, 50});
  std::vector<AllocatedSlot> fragments;
  while (m_set->statistics().classes[k256K].split_free_blocks > 0) {
    fragments.push_back(allocate(4 * kKiB)[0]);
  }
  own(fragments);
  for (const AllocatedSlot& fragment : fragments) {
    free_now(fragment.blocks());
  }
  EXPECT_FALSE(m_set->is_primed(slot));
  free_now({slot, 25, 25, 50});
  EXPECT_EQ(m_set->statistics().classes[k256K].split, 0u);
  EXPECT_TRUE(m_set->is_primed(slot));
}

TEST_F(SplitInPlaceTest, ASlotOfWhichAllIsFreeIsWholeAgain) {
  const SlotAddress slot = own_one(256 * kKiB);
  free_now({slot, 8, 4, 64});
  const AllocatedSlot fragment = allocate(16 * kKiB)[0];
  own({fragment});
  free_now({slot, 0, 8, 64});
  free_now({slot, 12, 52, 64});
  EXPECT_EQ(m_set->statistics().classes[k256K].split, 1u);
  free_now(fragment.blocks());
  EXPECT_EQ(m_set->statistics().classes[k256K].split, 0u);
  EXPECT_EQ(m_set->statistics().owned_bytes, 0u);
  EXPECT_EQ(allocate(256 * kKiB)[0].address, slot);
}

TEST_F(SplitInPlaceTest, AReservedFragmentKeepsItsSlotSplit) {
  const SlotAddress slot = own_one(256 * kKiB);
  free_now({slot, 0, 63, 64});
  const std::vector<AllocatedSlot> fragment = allocate(4 * kKiB);
  ASSERT_EQ(fragment[0].address.whole(), slot);
  free_now({slot, 63, 1, 64});  // the last that had an owner
  checkpoint();
  EXPECT_EQ(entries_of_split_slots(), 0u);
  own(fragment);
  EXPECT_TRUE(m_set->is_owned(fragment[0].blocks()));
  // The log's tail alone makes the slot split again.
  open();
  EXPECT_TRUE(m_set->is_owned(fragment[0].blocks()));
  EXPECT_EQ(m_set->statistics().owned_bytes, 4 * kKiB);
}

TEST_F(SplitInPlaceTest, AbandonedFragmentsAreFreeAtOnce) {
  const SlotAddress slot = own_one(256 * kKiB);
  free_now({slot, 16, 16, 64});
  const std::vector<AllocatedSlot> fragment = allocate(40 * kKiB);
  m_set->abandon(fragment);
  EXPECT_EQ(m_set->statistics().classes[k256K].split_free_blocks, 16u);
}

TEST_F(SplitInPlaceTest, FragmentsComeBeforeSlotsAndBeforeGrowth) {
  const SlotAddress slot = own_one(256 * kKiB);
  free_now({slot, 0, 32, 64});
  const uint64_t before = m_set->statistics().file_bytes;
  std::set<uint64_t> offsets;
  for (int i = 0; i < 32; i++) {
    const AllocatedSlot fragment = allocate(4 * kKiB)[0];
    EXPECT_EQ(fragment.address.whole(), slot);
    EXPECT_TRUE(offsets.insert(fragment.address.byte_offset()).second);
  }
  EXPECT_EQ(m_set->statistics().file_bytes, before);
  EXPECT_EQ(allocate(4 * kKiB)[0].address.split_levels, 0);
}

// With small slots exhausted and no room to grow, a free large one is broken up: nothing of it is wasted.
TEST_F(SplitInPlaceTest, AFreeLargeSlotServesSmallWritesOnAFullHost) {
  const SlotAddress slot = own_one(256 * kKiB);
  m_env.set_capacity(m_env.allocated_bytes());
  uint64_t small = 0;
  std::vector<AllocatedSlot> slots;
  while (m_set->allocate(64 * kKiB, &slots).ok()) {
  }
  while (m_set->allocate(4 * kKiB, &slots).ok()) {
  }
  free_now(SlotBlocks::all(slot));
  while (m_set->allocate(4 * kKiB, &slots).ok()) {
    small++;
  }
  EXPECT_EQ(small, 64u);
}

TEST_F(SplitInPlaceTest, RecoveryFindsWhoOwnsWhatFromCheckpointAndLog) {
  std::mt19937_64 random(11);
  std::vector<SlotBlocks> owned;
  for (int step = 0; step < 3000; step++) {
    if (owned.size() < 40 || random() % 2 == 0) {
      const std::vector<AllocatedSlot> slots = allocate(4 * kKiB * (1 + random() % 64));
      own(slots);
      for (const AllocatedSlot& slot : slots) {
        owned.push_back(slot.blocks());
      }
    } else {
      // From the front of what is left, so that one run says it.
      const size_t which = random() % owned.size();
      SlotBlocks freed = owned[which];
      freed.count = 1 + static_cast<uint32_t>(random() % freed.count);
      apply({.allocated = {}, .freed = {freed}});
      owned[which].first += freed.count;
      owned[which].count -= freed.count;
      if (owned[which].count == 0) {
        owned.erase(owned.begin() + static_cast<long>(which));
      }
    }
    if (random() % 4 == 0) {
      m_set->set_reuse_horizon(m_sequence - random() % 8);
    }
    if (random() % 50 == 0) {
      checkpoint();
    }
    if (random() % 100 == 0) {
      const uint64_t before = m_set->statistics().owned_bytes;
      open();
      ASSERT_EQ(m_set->statistics().owned_bytes, before);
    }
    if (step % 10 == 0) {
      std::set<std::pair<SlotAddress, uint32_t>> blocks;
      for (const SlotBlocks& one : owned) {
        ASSERT_TRUE(m_set->is_owned(one));
        for (uint32_t block = 0; block < one.count; block++) {
          ASSERT_TRUE(blocks.emplace(one.slot.whole(), one.first_block() + block).second);
        }
      }
    }
  }
  for (const SlotBlocks& one : owned) {
    apply({.allocated = {}, .freed = {one}});
  }
  checkpoint();
  EXPECT_EQ(entries_of_split_slots(), 0u);
  EXPECT_EQ(m_set->statistics().owned_bytes, 0u);
  open();
  EXPECT_EQ(m_set->statistics().owned_bytes, 0u);
}

// A repair claims what extents name; of these blocks some may be owned already.
TEST_F(SplitInPlaceTest, ClaimsWhatIsFreeOfTheBlocks) {
  const SlotAddress slot = own_one(64 * kKiB);
  free_now({slot, 4, 4, 16});
  std::vector<SlotBlocks> claimed;
  check(m_set->claim({slot, 2, 4, 16}, &claimed));
  EXPECT_EQ(claimed, (std::vector<SlotBlocks>{{slot, 4, 2, 16}}));
  apply({.allocated = claimed, .freed = {}});
  EXPECT_TRUE(m_set->is_owned({slot, 0, 6, 16}));
  EXPECT_FALSE(m_set->is_owned({slot, 0, 7, 16}));
  // Of a slot that is free as a whole the fragment alone.
  free_now({slot, 0, 6, 16});
  free_now({slot, 8, 8, 16});
  claimed.clear();
  const SlotAddress fragment{1, slot.index << 3 | 5, 3};
  check(m_set->claim(SlotBlocks::all(fragment), &claimed));
  apply({.allocated = claimed, .freed = {}});
  EXPECT_TRUE(m_set->is_owned(SlotBlocks::all(fragment)));
  EXPECT_EQ(m_set->statistics().owned_bytes, 8 * kKiB);
}

// Two transactions, of a damaged store, whose extents name the same blocks.
TEST_F(SplitInPlaceTest, WhatATransactionFreesNoOtherFrees) {
  const SlotAddress slot = own_one(64 * kKiB);
  const SlotAddress fragment{0, slot.index << k64K | 5, k64K};
  EXPECT_TRUE(m_set->begin_free({slot, 4, 4, 16}));
  EXPECT_FALSE(m_set->begin_free({slot, 7, 1, 16}));
  EXPECT_FALSE(m_set->begin_free({slot, 0, 16, 16}));
  EXPECT_FALSE(m_set->begin_free(SlotBlocks::all(fragment)));
  EXPECT_TRUE(m_set->begin_free({slot, 3, 1, 16}));
  m_set->end_free({slot, 3, 1, 16});
  EXPECT_TRUE(m_set->begin_free({slot, 3, 1, 16}));
  EXPECT_TRUE(m_set->begin_free({slot, 8, 8, 16}));
  apply({.allocated = {}, .freed = {{slot, 4, 4, 16}}});
  EXPECT_FALSE(m_set->begin_free({slot, 4, 4, 16}));  // nobody's now
  m_set->set_reuse_horizon(m_sequence);
  const std::vector<AllocatedSlot> again = allocate(4 * kKiB);
  own(again);
  EXPECT_TRUE(m_set->begin_free(again[0].blocks()));
  EXPECT_FALSE(m_set->begin_free(again[0].blocks()));
}

TEST_F(SplitInPlaceTest, ContradictionsOfTheLogAreErrors) {
  const SlotAddress slot = own_one(64 * kKiB);
  const SlotAddress fragment{0, slot.index << k64K | 3, k64K};
  const auto refuses = [this](const AllocationDelta& delta) { return m_set->replay(delta).is_corruption(); };
  EXPECT_TRUE(refuses({.allocated = {SlotBlocks::all(fragment)}, .freed = {}}));  // another owner's
  EXPECT_TRUE(refuses({.allocated = {}, .freed = {SlotBlocks::all(fragment)}}));  // of a slot that is not split
  check(m_set->replay({.allocated = {}, .freed = {{slot, 3, 1, 16}}}));
  EXPECT_TRUE(refuses({.allocated = {}, .freed = {{slot, 3, 1, 16}}}));
  check(m_set->replay({.allocated = {SlotBlocks::all(fragment)}, .freed = {}}));
  EXPECT_TRUE(refuses({.allocated = {SlotBlocks::all(fragment)}, .freed = {}}));
  EXPECT_TRUE(refuses({.allocated = {SlotBlocks::all({0, uint64_t{1} << 40, k64K})}, .freed = {}}));
  m_entries[SplitSlotRecord::encode_key(k64K, slot.index + 1)] =
      SplitSlotRecord::encode_value(k64K, std::vector<uint64_t>{1});
  EXPECT_TRUE(m_set
                  ->load_split_slot(SplitSlotRecord::encode_key(k64K, slot.index + 1),
                                    m_entries[SplitSlotRecord::encode_key(k64K, slot.index + 1)])
                  .is_corruption());
}

}  // namespace
}  // namespace swimstore
