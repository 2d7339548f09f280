// SPDX-License-Identifier: LGPL-2.1-or-later
// Fragments of chunks that go back to the host. In the simulator, without a database: the test plays its part.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "swimstore/container/container.h"
#include "swimstore/container/container_set.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::SequenceNumber;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

class ContainerPunchingTest : public testing::Test {
 protected:
  ContainerPunchingTest() {
    m_options.chunk_bytes = 256 * kKiB;
    m_options.primed_class_max = 0;
    m_options.primed_ahead_bytes = 0;
    m_options.reserve_bytes = 512 * kKiB;
    m_options.hole_bytes_min = 16 * kKiB;
    check(ContainerSet::create(&m_env, "/containers", m_options));
    open();
  }
  ~ContainerPunchingTest() override { m_set.reset(); }

  static void check(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }
  // As of the last checkpoint.
  void open() {
    m_set.reset();
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    for (const auto& [key, value] : m_tree) {
      const bool is_split = key[0] == kSplitSlotKeyPrefix;
      check(is_split ? m_set->load_split_slot(key, value) : m_set->load_page(key, value));
    }
    check(m_set->finish_recovery());
  }
  void checkpoint() {
    std::vector<vtkv::CheckpointEntry> entries;
    m_set->collect_pages(++m_sequence, &entries);
    for (const vtkv::CheckpointEntry& entry : entries) {
      if (entry.value) {
        m_tree.insert_or_assign(entry.key, *entry.value);
      } else {
        m_tree.erase(entry.key);
      }
    }
    m_set->checkpoint_durable(m_sequence);
    m_env.advance(std::chrono::milliseconds(500));
  }
  bool write(uint64_t bytes, std::vector<AllocatedSlot>* all = nullptr) {
    std::vector<AllocatedSlot> slots;
    if (!m_set->allocate(bytes, &slots).ok()) {
      return false;
    }
    if (all != nullptr) {
      all->insert(all->end(), slots.begin(), slots.end());
    }
    AllocationDelta delta;
    for (const AllocatedSlot& slot : slots) {
      delta.allocated.push_back(slot.blocks());
      m_owned.push_back(slot.blocks());
    }
    m_set->apply(++m_sequence, delta);
    return true;
  }
  void fill(uint64_t bytes) {
    while (write(bytes)) {
    }
  }
  void prime_all() {
    for (const SlotBlocks& blocks : m_owned) {
      vtkv::File* const file = m_set->file(blocks.slot.container());
      check(file->write_zeros(blocks.slot.byte_offset(), slot_bytes(blocks.slot.size_class)));
      check(file->sync());
      m_set->mark_primed({blocks.slot});
    }
  }
  // Every n-th, of those that were written from `from` on.
  void free_each(size_t n, size_t from = 0) {
    AllocationDelta delta;
    std::vector<SlotBlocks> left;
    for (size_t i = 0; i < m_owned.size(); ++i) {
      (i >= from && i % n == 0 ? delta.freed : left).push_back(m_owned[i]);
    }
    m_owned = left;
    m_set->apply(++m_sequence, delta);
    m_set->set_reuse_horizon(m_sequence);
  }
  // Of slots of 256 KiB; returns the bytes of what was freed. Other owned slots stay.
  uint64_t keep_eight_blocks_each() {
    uint64_t freed_blocks = 0;
    AllocationDelta delta;
    for (SlotBlocks& blocks : m_owned) {
      if (blocks.count == 64) {
        delta.freed.push_back({blocks.slot, 8, 56, 64});
        freed_blocks += 56;
        blocks.count = 8;
      }
    }
    m_set->apply(++m_sequence, delta);
    m_set->set_reuse_horizon(m_sequence);
    return freed_blocks * kBlockBytes;
  }
  // The log takes it, and the host has no more than the margin.
  void take_from_the_reserve(unsigned slices) {
    for (; slices > 0; --slices) {
      ASSERT_TRUE(m_set->make_room());
      m_env.set_capacity(m_env.allocated_bytes() + 128 * kKiB);
    }
  }
  ContainerStatistics statistics() const { return m_set->statistics(); }
  // How many blocks of `slots` the host has no space for.
  uint64_t blocks_without_space(const std::vector<AllocatedSlot>& slots) {
    uint64_t found = 0;
    for (unsigned container = 0; container < kSizeClasses; ++container) {
      vtkv::FileSpace space;
      check(m_set->file(container)->map_space(&space));
      std::set<uint64_t> blocks;
      for (const vtkv::FileRange& hole : space.holes) {
        for (uint64_t at = hole.offset; at < hole.offset + hole.length; at += kBlockBytes) {
          blocks.insert(at / kBlockBytes);
        }
      }
      for (const AllocatedSlot& slot : slots) {
        for (uint64_t at = 0; slot.address.container() == container && at < slot.bytes; at += kBlockBytes) {
          found += blocks.contains((slot.address.byte_offset() + at) / kBlockBytes);
        }
      }
    }
    return found;
  }
  std::vector<AllocatedSlot> take_all(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    while (write(bytes, &slots)) {
    }
    return slots;
  }

  vtkv::SimEnv m_env{{.seed = 3, .profile = vtkv::SimProfile::ext4, .capacity_bytes = 32 * kMiB, .record = false}};
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  std::map<std::string, std::string> m_tree;
  SequenceNumber m_sequence = 0;
  std::vector<SlotBlocks> m_owned;
};

}  // namespace

// No chunk is free as a whole.
TEST_F(ContainerPunchingTest, FreeFragmentsOfChunksMakeTheReserveWhole) {
  fill(16 * kKiB);
  take_from_the_reserve(6);
  const uint64_t reserve = statistics().reserve_target_bytes;
  ASSERT_LT(statistics().reserve_bytes, reserve / 2);
  free_each(2);
  const uint64_t before = statistics().free_bytes;
  checkpoint();
  checkpoint();
  EXPECT_EQ(statistics().reserve_bytes, reserve);
  const uint64_t punched = statistics().punched_fragments_bytes_total;
  EXPECT_GT(punched, 0u);
  EXPECT_LT(punched, reserve * 2) << "no more than it lacked";
  EXPECT_EQ(statistics().free_bytes, before - punched);
  EXPECT_EQ(statistics().hole_bytes, punched);
}

TEST_F(ContainerPunchingTest, FragmentsOfSplitSlotsGoToo) {
  fill(256 * kKiB);
  take_from_the_reserve(6);
  keep_eight_blocks_each();
  checkpoint();
  checkpoint();
  EXPECT_EQ(statistics().reserve_bytes, statistics().reserve_target_bytes);
  EXPECT_GT(statistics().hole_bytes, 0u);
  open();
  EXPECT_GT(statistics().hole_bytes, 0u);
  EXPECT_EQ(blocks_without_space(take_all(4 * kKiB)), 0u);
}

// What the host has lent space for again is not: it would need a sync of its own.
TEST_F(ContainerPunchingTest, APunchedFragmentLeavesTheRestOfItsSlotPrimed) {
  fill(256 * kKiB);
  prime_all();
  checkpoint();
  take_from_the_reserve(6);
  const uint64_t freed_bytes = keep_eight_blocks_each();
  for (unsigned i = 0; i < 4; ++i) {
    checkpoint();
  }
  const uint64_t punched_bytes = statistics().punched_fragments_bytes_total;
  ASSERT_GT(punched_bytes, 0u);
  uint64_t primed_bytes = 0;
  for (const AllocatedSlot& slot : take_all(4 * kKiB)) {
    primed_bytes += slot.primed && slot.address.split_levels > 0 ? slot.bytes : 0;
  }
  EXPECT_EQ(primed_bytes, freed_bytes - punched_bytes);
}

// More than the reserve, as of a placement group that is to be copied: nothing but fragments is free.
TEST_F(ContainerPunchingTest, FragmentsGoForLogAndTreeThatAreWaitedFor) {
  fill(16 * kKiB);
  free_each(2);
  const uint64_t wanted = 2 * m_options.reserve_bytes;
  ASSERT_GT(statistics().free_bytes, 2 * wanted);
  bool promised = false;
  for (unsigned i = 0; i < 40 && !promised; ++i) {
    promised = m_set->promise_much(0, Urgency::late, wanted);
    checkpoint();
  }
  EXPECT_TRUE(promised);
  const uint64_t punched = statistics().punched_fragments_bytes_total;
  EXPECT_LT(punched, 2 * wanted) << "no more than was lacking";
  // Another one takes the room, and nobody waits any more.
  m_env.advance(std::chrono::seconds(2));
  m_env.set_capacity(m_env.allocated_bytes() + m_options.reserve_bytes / 4);
  free_each(4);
  m_set->give_space_back(0);
  for (unsigned i = 0; i < 4; ++i) {
    checkpoint();
  }
  EXPECT_EQ(statistics().punched_fragments_bytes_total, punched);
  // The next one is not taken for the one before, and finds what was passed over then.
  promised = false;
  for (unsigned i = 0; i < 40 && !promised; ++i) {
    promised = m_set->promise_much(0, Urgency::late, wanted / 2);
    checkpoint();
  }
  EXPECT_TRUE(promised);
  EXPECT_LT(statistics().punched_fragments_bytes_total, punched + wanted);
}

TEST_F(ContainerPunchingTest, WithTheReserveWholeNoFragmentGoes) {
  fill(16 * kKiB);
  free_each(2);
  checkpoint();
  checkpoint();
  EXPECT_EQ(statistics().punched_fragments_bytes_total, 0u);
}

// As when small objects went at random. With less than the whole reserve the store were full again with the next
// segment of the log.
TEST_F(ContainerPunchingTest, SmallFragmentsOfAFullStoreGoUntilTheReserveIsWhole) {
  fill(4 * kKiB);
  checkpoint();
  take_from_the_reserve(6);
  free_each(2);  // the least run that is punched is of 16 KiB
  for (unsigned i = 0; i < 40; ++i) {
    checkpoint();
  }
  const ContainerStatistics after = statistics();
  EXPECT_EQ(after.reserve_bytes, after.reserve_target_bytes);
  EXPECT_LT(after.punched_fragments_bytes_total, 2 * after.reserve_target_bytes);
  EXPECT_EQ(blocks_without_space(take_all(4 * kKiB)), 0u);
}

TEST_F(ContainerPunchingTest, SmallFragmentsStayWhileTheStoreIsNotFull) {
  fill(4 * kKiB);
  checkpoint();
  take_from_the_reserve(1);
  free_each(2);
  for (unsigned i = 0; i < 40; ++i) {
    checkpoint();
  }
  EXPECT_EQ(statistics().punched_fragments_bytes_total, 0u);
}

// However long it is since the reserve was low.
TEST_F(ContainerPunchingTest, SmallFragmentsStayWhenTheReserveWasWholeSince) {
  fill(4 * kKiB);
  checkpoint();
  const uint64_t capacity = m_env.allocated_bytes();
  take_from_the_reserve(6);
  checkpoint();
  checkpoint();
  m_env.set_capacity(capacity + 32 * kMiB);  // the host has room again
  for (unsigned i = 0; i < 20; ++i) {
    checkpoint();
  }
  ASSERT_EQ(statistics().reserve_bytes, statistics().reserve_target_bytes);
  take_from_the_reserve(1);
  free_each(2);
  for (unsigned i = 0; i < 40; ++i) {
    checkpoint();
  }
  EXPECT_EQ(statistics().punched_fragments_bytes_total, 0u);
}

// Nothing is freed any more when log and tree take what makes the store full.
TEST_F(ContainerPunchingTest, SmallFragmentsGoWhenTheReserveBecomesLowLater) {
  fill(4 * kKiB);
  free_each(2);
  checkpoint();
  for (const unsigned slices : {6u, 2u}) {
    take_from_the_reserve(slices);
    EXPECT_LE(statistics().reserve_bytes * 4, statistics().reserve_target_bytes * 3);
    for (unsigned i = 0; i < 40; ++i) {
      checkpoint();
    }
    EXPECT_GT(statistics().reserve_bytes * 4, statistics().reserve_target_bytes * 3);
  }
}

// What was missing at an open counts as lent.
TEST_F(ContainerPunchingTest, SmallFragmentsGoAfterAnOpenToo) {
  fill(4 * kKiB);
  free_each(2);
  checkpoint();
  take_from_the_reserve(7);
  const uint64_t capacity = m_env.allocated_bytes() + 64 * kKiB;
  m_env.set_capacity(capacity);
  open();
  for (unsigned i = 0; i < 40; ++i) {
    checkpoint();
  }
  const ContainerStatistics after = statistics();
  EXPECT_GE((after.reserve_bytes + capacity - m_env.allocated_bytes()) * 2, after.reserve_target_bytes);
}

TEST_F(ContainerPunchingTest, LargeFragmentsGoFirst) {
  fill(16 * kKiB);
  take_from_the_reserve(4);
  const size_t run = 256;  // 4 MiB of neighbours, but not a chunk
  AllocationDelta delta;
  for (size_t i = 0; i < m_owned.size(); ++i) {
    if (i % 2 == 0 || (i < run && i % 16 != 0)) {
      delta.freed.push_back(m_owned[i]);
    }
  }
  m_set->apply(++m_sequence, delta);
  m_set->set_reuse_horizon(m_sequence);
  checkpoint();
  checkpoint();
  ASSERT_EQ(statistics().reserve_bytes, statistics().reserve_target_bytes);
  vtkv::FileSpace space;
  check(m_set->file(2)->map_space(&space));
  ASSERT_FALSE(space.holes.empty());
  for (const vtkv::FileRange& hole : space.holes) {
    EXPECT_GE(hole.length, 64 * kKiB) << hole.offset;
  }
}

TEST_F(ContainerPunchingTest, NothingPunchedIsHandedOutBeforeAContainerGrows) {
  fill(16 * kKiB);
  take_from_the_reserve(6);
  free_each(2);
  checkpoint();
  checkpoint();
  const uint64_t holes = statistics().hole_bytes;
  ASSERT_GT(holes, 0u);
  EXPECT_EQ(blocks_without_space(take_all(16 * kKiB)), 0u);
  EXPECT_EQ(statistics().hole_bytes, holes);
  const uint64_t file_bytes = statistics().file_bytes;
  m_env.set_capacity(m_env.allocated_bytes() + 2 * kMiB);  // the operator makes room
  EXPECT_EQ(blocks_without_space(take_all(16 * kKiB)), 0u);
  EXPECT_EQ(statistics().hole_bytes, 0u);
  EXPECT_GE(statistics().file_bytes, file_bytes + holes);
}

TEST_F(ContainerPunchingTest, HolesThatGiveNoWholeSlotAreNotFilledForOne) {
  fill(256 * kKiB);
  take_from_the_reserve(6);
  keep_eight_blocks_each();
  checkpoint();
  checkpoint();
  const uint64_t holes = statistics().hole_bytes;
  ASSERT_GT(holes, 0u);
  m_env.set_capacity(m_env.allocated_bytes() + 2 * kMiB);  // the operator makes room
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(256 * kKiB, &slots));
  EXPECT_EQ(slots.size(), 1u);
  EXPECT_EQ(statistics().hole_bytes, holes);
}

TEST_F(ContainerPunchingTest, HolesAreKnownAfterAnOpen) {
  fill(16 * kKiB);
  take_from_the_reserve(6);
  free_each(2);
  checkpoint();
  checkpoint();
  const ContainerStatistics before = statistics();
  ASSERT_GT(before.hole_bytes, 0u);
  checkpoint();
  open();
  EXPECT_EQ(statistics().hole_bytes, before.hole_bytes);
  EXPECT_EQ(statistics().free_bytes, before.free_bytes);
  EXPECT_EQ(statistics().owned_bytes, before.owned_bytes);
  EXPECT_EQ(blocks_without_space(take_all(16 * kKiB)), 0u);
}

// A crash cuts the growth of a file short.
// A copy that leaves out zeros makes holes in what is owned.
TEST_F(ContainerPunchingTest, AnOwnedSlotWithAHoleIsNotPrimedWhenItIsFree) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  prime_all();
  checkpoint();
  const SlotAddress slot = slots.front().address;
  ASSERT_TRUE(m_set->is_primed(slot));
  check(m_set->file(slot.container())->punch_hole(slot.byte_offset() + kBlockBytes, kBlockBytes));
  open();
  EXPECT_FALSE(m_set->is_primed(slot));
  open();
  EXPECT_FALSE(m_set->is_primed(slot)) << "no page was written since, and the host calls it reserved now";
}

TEST_F(ContainerPunchingTest, NothingOfASplitSlotWithReservedPartsIsPrimed) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(64 * kKiB, &slots));
  prime_all();
  const SlotBlocks& whole = m_owned.front();
  m_set->apply(++m_sequence, {.allocated = {}, .freed = {{whole.slot, 0, 4, whole.written}}});
  m_set->set_reuse_horizon(m_sequence);
  checkpoint();
  for (const uint64_t block : {6, 10}) {
    check(m_set->file(whole.slot.container())->punch_hole(whole.slot.byte_offset() + block * kBlockBytes, kBlockBytes));
  }
  open();
  open();
  EXPECT_FALSE(m_set->is_primed(whole.slot));
  const SlotBlocks behind{whole.slot, 8, 4, whole.written};  // one of them lies in the second hole
  m_set->apply(++m_sequence, {.allocated = {}, .freed = {behind}});
  m_set->set_reuse_horizon(m_sequence);
  std::vector<AllocatedSlot> taken;
  while (m_set->allocate(16 * kKiB, &taken).ok()) {
    EXPECT_FALSE(taken.back().primed &&
                 taken.back().address.byte_offset() == whole.slot.byte_offset() + 8 * kBlockBytes);
  }
}

TEST_F(ContainerPunchingTest, AFreeHoleThatGotSpaceAgainIsNotPrimedAtTheNextOpen) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  prime_all();
  free_each(1);
  checkpoint();
  const SlotAddress slot = slots.front().address;
  ASSERT_TRUE(m_set->is_primed(slot));
  check(m_set->file(slot.container())->punch_hole(slot.byte_offset(), kBlockBytes));
  open();
  EXPECT_EQ(blocks_without_space(take_all(16 * kKiB)), 0u);
  EXPECT_EQ(blocks_without_space(slots), 0u);
  open();
  EXPECT_FALSE(m_set->is_primed(slot));
}

// A crash, too, may keep a write and lose the growth before it.
TEST_F(ContainerPunchingTest, AnOwnedSlotWithAHoleGetsSpaceAgain) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  checkpoint();
  const SlotAddress slot = slots.front().address;
  check(m_set->file(slot.container())->punch_hole(slot.byte_offset() + kBlockBytes, kBlockBytes));
  EXPECT_EQ(blocks_without_space(slots), 1u);
  open();
  EXPECT_EQ(blocks_without_space(slots), 0u);
}

TEST_F(ContainerPunchingTest, AFreeSlotWithHolesGetsNone) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  free_each(1);
  checkpoint();
  const SlotAddress slot = slots.front().address;
  for (const uint64_t block : {0, 2}) {
    check(m_set->file(slot.container())->punch_hole(slot.byte_offset() + block * kBlockBytes, kBlockBytes));
  }
  const uint64_t before = m_env.allocated_bytes();
  open();
  EXPECT_EQ(m_env.allocated_bytes(), before);
}

TEST_F(ContainerPunchingTest, AnOwnedSlotThatGetsNoSpaceIsAHoleWhenItIsFree) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  fill(16 * kKiB);
  checkpoint();
  const SlotAddress slot = slots.front().address;
  check(m_set->file(slot.container())->punch_hole(slot.byte_offset() + kBlockBytes, kBlockBytes));
  m_env.set_capacity(m_env.allocated_bytes() + 128 * kKiB);  // the margin
  open();
  EXPECT_EQ(blocks_without_space(slots), 1u);
  free_each(1);
  EXPECT_EQ(blocks_without_space(take_all(16 * kKiB)), 0u);
}

// The slot is freed in pieces, whose bounds are not the hole's.
TEST_F(ContainerPunchingTest, AnOwnedHoleIsFreedPieceByPiece) {
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(write(16 * kKiB, &slots));
  fill(16 * kKiB);
  checkpoint();
  const SlotAddress slot = slots.front().address;
  check(m_set->file(slot.container())->punch_hole(slot.byte_offset(), 3 * kBlockBytes));
  m_env.set_capacity(m_env.allocated_bytes() + 128 * kKiB);  // the margin
  open();
  for (const uint32_t block : {1u, 0u, 3u, 2u}) {
    AllocationDelta delta;
    delta.freed.push_back({.slot = slot, .first = block, .count = 1, .written = 4});
    m_set->apply(++m_sequence, delta);
    m_set->set_reuse_horizon(m_sequence);
    EXPECT_EQ(blocks_without_space(take_all(4 * kKiB)), 0u) << "with block " << block;
  }
}

// Its bits are durable, and it was closed, or killed, before the hole was punched.
TEST_F(ContainerPunchingTest, WhatWasAboutToBePunchedWhenItWasClosedIsNotLost) {
  fill(256 * kKiB);
  prime_all();
  checkpoint();
  const uint64_t filled_bytes = m_env.allocated_bytes();
  free_each(1);
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(m_env.allocated_bytes(), filled_bytes);
  std::vector<vtkv::CheckpointEntry> entries;
  m_set->collect_pages(++m_sequence, &entries);
  for (const vtkv::CheckpointEntry& entry : entries) {
    m_tree.insert_or_assign(entry.key, *entry.value);
  }
  open();
  EXPECT_GT(statistics().free_bytes, filled_bytes / 2);
  for (unsigned i = 0; i < 8; ++i) {
    checkpoint();
  }
  EXPECT_LT(m_env.allocated_bytes(), filled_bytes / 2);
}

TEST_F(ContainerPunchingTest, WhatLiesPastTheFilesEndIsAHole) {
  ASSERT_TRUE(write(16 * kKiB));
  checkpoint();
  m_set.reset();
  {
    std::unique_ptr<vtkv::File> file;
    check(m_env.open_file("/containers/16K", {}, &file));
    check(file->truncate(64 * kKiB));
  }
  m_env.set_capacity(m_env.allocated_bytes());
  open();
  EXPECT_EQ(statistics().classes[2].free, 3u);
  EXPECT_EQ(statistics().hole_bytes, 192 * kKiB);
}

// The pages of the older checkpoint call these slots primed.
TEST_F(ContainerPunchingTest, NoFragmentIsPunchedBeforeACheckpointCallsItUnprimed) {
  fill(16 * kKiB);
  prime_all();
  checkpoint();
  take_from_the_reserve(6);
  free_each(2);
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(statistics().punched_fragments_bytes_total, 0u);
  checkpoint();
  EXPECT_GT(statistics().punched_fragments_bytes_total, 0u);
}

// Withheld once, a slot is primed no more, and no page says so yet: then all of its chunk is to go.
TEST_F(ContainerPunchingTest, AChunkOfWhichAFragmentWasWithheldWaitsForACheckpoint) {
  fill(16 * kKiB);
  prime_all();
  checkpoint();
  checkpoint();
  take_from_the_reserve(6);
  free_each(2);
  m_env.advance(std::chrono::seconds(2));
  while (write(16 * kKiB)) {  // takes back what is withheld
  }
  free_each(1);
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(statistics().punched_bytes_total, 0u);
  checkpoint();
  EXPECT_GT(statistics().punched_bytes_total, 0u);
}

TEST_F(ContainerPunchingTest, AFragmentWhosePunchFailedComesBackThroughGrowth) {
  fill(16 * kKiB);
  prime_all();
  checkpoint();
  take_from_the_reserve(6);
  free_each(2);
  m_env.set_bad(vtkv::SimBad::punches, "/containers/16K", 0, uint64_t{1} << 40);
  checkpoint();
  checkpoint();
  EXPECT_EQ(statistics().punched_fragments_bytes_total, 0u);
  std::vector<AllocatedSlot> slots = take_all(16 * kKiB);
  EXPECT_EQ(blocks_without_space(slots), 0u);
  m_env.set_capacity(m_env.allocated_bytes() + 2 * kMiB);
  slots = take_all(16 * kKiB);
  EXPECT_EQ(blocks_without_space(slots), 0u);
}

}  // namespace swimstore
