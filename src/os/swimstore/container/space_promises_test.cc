// SPDX-License-Identifier: LGPL-2.1-or-later
// Promised room is there, whatever else goes on. In the simulator, without a database: the test plays its part.

#include <gtest/gtest.h>

#include <random>

#include "swimstore/container/best_fit.h"
#include "swimstore/container/container_set.h"
#include "swimstore/container/space_reserve.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::SequenceNumber;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

class SpacePromisesTest : public testing::Test {
 protected:
  SpacePromisesTest() {
    m_options.chunk_bytes = 64 * kKiB;
    m_options.primed_class_max = 1;
    m_options.primed_ahead_bytes = 64 * kKiB;
    m_options.reserve_bytes = 512 * kKiB;
    check(ContainerSet::create(&m_env, "/containers", m_options));
    open();
  }
  ~SpacePromisesTest() override { m_set.reset(); }

  static void check(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }
  void open() {
    m_set.reset();
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    check(m_set->finish_recovery());
  }

  // False: no room is promised. What was promised must be there.
  bool write(uint64_t bytes, Urgency urgency = Urgency::usual) {
    const uint64_t most = most_slot_bytes(bytes);
    if (!m_set->promise(most, urgency)) {
      return false;
    }
    std::vector<AllocatedSlot> slots;
    const Status status = m_set->allocate(bytes, &slots);
    m_set->give_back(most);
    m_broken += !status.ok();
    AllocationDelta delta;
    for (const AllocatedSlot& slot : slots) {
      delta.allocated.push_back(slot.blocks());
      m_owned.push_back(slot.blocks());
    }
    m_set->apply(++m_sequence, delta);
    return true;
  }
  void fill(uint64_t bytes, Urgency urgency = Urgency::usual) {
    while (write(bytes, urgency) && m_broken == 0) {
    }
  }
  // Parts of slots too, so that they split.
  void free_some(std::mt19937_64& random, uint64_t one_in) {
    AllocationDelta delta;
    std::vector<SlotBlocks> left;
    for (SlotBlocks& blocks : m_owned) {
      if (random() % one_in != 0) {
        left.push_back(blocks);
        continue;
      }
      SlotBlocks freed = blocks;
      if (blocks.count > 1 && random() % 2 == 0) {
        freed.count = static_cast<uint32_t>(1 + random() % (blocks.count - 1));
        left.push_back({blocks.slot, blocks.first + freed.count, blocks.count - freed.count, blocks.written});
      }
      delta.freed.push_back(freed);
    }
    m_owned = left;
    m_set->apply(++m_sequence, delta);
    m_set->set_reuse_horizon(m_sequence);
  }
  void checkpoint() {
    std::vector<vtkv::CheckpointEntry> entries;
    m_set->collect_pages(++m_sequence, &entries);
    m_set->checkpoint_durable(m_sequence);
    m_env.advance(std::chrono::milliseconds(200));
  }
  // Random sizes to the brim, random slots freed, priming and punching in between.
  void age(unsigned rounds);

  vtkv::SimEnv m_env{{.seed = 5, .profile = vtkv::SimProfile::ext4, .capacity_bytes = 32 * kMiB, .record = false}};
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  SequenceNumber m_sequence = 0;
  std::vector<SlotBlocks> m_owned;
  uint64_t m_broken = 0;  // promises
};

void SpacePromisesTest::age(unsigned rounds) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned refused = 0; refused < 20;) {
      const uint64_t bytes = kBlockBytes * (1 + random() % (uint64_t{1} << random() % 9));
      refused += !write(bytes, static_cast<Urgency>(random() % 3));
    }
    checkpoint();
    free_some(random, 2 + round % 5);
    m_env.advance(std::chrono::milliseconds(100));
  }
}

}  // namespace

TEST_F(SpacePromisesTest, WhatWasPromisedIsThere) {
  age(40);
  EXPECT_EQ(m_broken, 0u);
}

TEST_F(SpacePromisesTest, APromiseOfWhatIsNotThereIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  const vtkv::ScopedMutation broken(vtkv::Mutation::room_promised_blindly);
  open();
  fill(64 * kKiB);
  EXPECT_GT(m_broken, 0u);
}

TEST_F(SpacePromisesTest, ManyPromisesAtOnceAreKept) {
  std::vector<uint64_t> promised;
  while (m_set->promise(most_slot_bytes(100 * kKiB), Urgency::usual)) {
    promised.push_back(100 * kKiB);
  }
  ASSERT_GT(promised.size(), 200u);
  m_env.set_capacity(m_env.allocated_bytes());  // somebody else fills the host
  checkpoint();
  for (const uint64_t bytes : promised) {
    std::vector<AllocatedSlot> slots;
    ASSERT_TRUE(m_set->allocate(bytes, &slots).ok());
    m_set->give_back(most_slot_bytes(bytes));
  }
}

// 12 KiB where nothing but slots of 8 KiB is free: one of them is split.
TEST_F(SpacePromisesTest, NoBlockIsWastedWhenLittleIsLeft) {
  fill(8 * kKiB, Urgency::privileged);
  std::vector<SlotBlocks> two(m_owned.end() - 2, m_owned.end());
  m_owned.resize(m_owned.size() - 2);
  m_set->apply(++m_sequence, {{}, two});
  m_set->set_reuse_horizon(m_sequence);
  std::vector<AllocatedSlot> slots;
  ASSERT_TRUE(m_set->allocate(12 * kKiB, &slots).ok());
  EXPECT_TRUE(m_set->allocate(4 * kKiB, &slots).ok());
  EXPECT_FALSE(m_set->allocate(4 * kKiB, &slots).ok());
}

TEST_F(SpacePromisesTest, SomethingIsLeftForThoseWhoCannotWait) {
  fill(64 * kKiB);
  EXPECT_FALSE(m_set->promise(64 * kKiB, Urgency::usual));
  EXPECT_TRUE(write(4 * kKiB)) << "a small one leaves less";
  fill(4 * kKiB);
  EXPECT_FALSE(m_set->promise(4 * kKiB, Urgency::usual));
  EXPECT_TRUE(write(4 * kKiB, Urgency::privileged));
}

// An eighth of the reserve's size is kept free; beyond it, containers grow with slices of the reserve.
TEST_F(SpacePromisesTest, WhoHasWaitedAndWhoCannotWaitDrawOnTheReserve) {
  fill(64 * kKiB);
  const auto held = [this] { return m_set->statistics().reserve_bytes; };
  EXPECT_EQ(held(), 512 * kKiB);
  fill(64 * kKiB, Urgency::late);
  EXPECT_EQ(held(), 256 * kKiB);
  EXPECT_EQ(m_broken, 0u);
  fill(4 * kKiB, Urgency::privileged);
  EXPECT_EQ(held(), 128 * kKiB);
  EXPECT_EQ(m_broken, 0u);
}

// As a copy of a store has it: a copy leaves out what was never written.
TEST_F(SpacePromisesTest, AReserveOfHolesIsFilledAgain) {
  const uint64_t whole = m_env.allocated_bytes();
  m_set.reset();
  {
    std::unique_ptr<vtkv::File> file;
    check(m_env.open_file("/containers/reserve", {}, &file));
    check(file->truncate(0));
    check(file->truncate(512 * kKiB));
  }
  ASSERT_EQ(m_env.allocated_bytes(), whole - 512 * kKiB);
  open();
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(m_set->statistics().reserve_bytes, 512 * kKiB);
  EXPECT_GE(m_env.allocated_bytes(), whole);
}

// A reserve of 16 MiB is all that a host of 256 MiB has.
TEST(SpacePromisesOfASmallHostTest, AChunkIsNoLargerThanWhatTheReserveCanLend) {
  vtkv::SimEnv env({.seed = 5, .profile = vtkv::SimProfile::ext4, .capacity_bytes = 256 * kMiB, .record = false});
  const ContainerOptions options = {.chunk_bytes = 32 * kMiB, .primed_ahead_bytes = 0};
  ASSERT_TRUE(ContainerSet::create(&env, "/containers", options).ok());
  std::unique_ptr<ContainerSet> set;
  ASSERT_TRUE(ContainerSet::open(&env, "/containers", options, &set).ok());
  ASSERT_TRUE(set->begin_recovery().ok());
  ASSERT_TRUE(set->finish_recovery().ok());
  while (set->promise(kMiB, Urgency::usual)) {
  }
  EXPECT_TRUE(set->promise(kMiB, Urgency::late));
  EXPECT_TRUE(set->promise(kMiB, Urgency::privileged));
}

// With a sick disk waiting is no use: the allocation fails, and is heard of.
TEST_F(SpacePromisesTest, AHostThatFailsLetsGoWhoHasWaited) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EIO, "simulated"), true);
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::usual));
  ASSERT_TRUE(m_set->promise(kMiB, Urgency::late));
  m_set->give_back(kMiB);
  m_env.clear_faults();
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(ENOSPC, "simulated"), true);
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::late));
}

// One bad range of one file is no sick host: who has waited waits on where the others lack space alone.
TEST_F(SpacePromisesTest, OneContainerThatFailsLetsNobodyGo) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EIO, "simulated"), false);
  m_env.fail_nth(vtkv::SimCall::allocate, 2, Status::from_errno(ENOSPC, "simulated"), true);
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::late));
  EXPECT_EQ(m_set->statistics().promised_bytes, 0u);
}

// ext4 lets no file be larger than 16 TiB.
TEST_F(SpacePromisesTest, OtherContainersGrowForOneThatCannot) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EFBIG, "simulated"), false);
  EXPECT_TRUE(m_set->promise(kMiB, Urgency::usual));
  EXPECT_NE(m_set->statistics().growth_error.find("/containers/1M"), std::string::npos);
  EXPECT_NE(m_set->statistics().growth_error.find("larger files"), std::string::npos);
  m_set->give_back(kMiB);
}

TEST_F(SpacePromisesTest, WithAllContainersAsLargeAsCanBeWhoHasWaitedWaitsOn) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EFBIG, "simulated"), true);
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::usual));
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::late));
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::privileged));
  EXPECT_EQ(m_set->statistics().promised_bytes, 0u);
}

TEST_F(SpacePromisesTest, AnErrorOfTheHostIsNamedWithTheFile) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EIO, "simulated"), true);
  EXPECT_FALSE(m_set->promise(kMiB, Urgency::usual));
  const std::string error = m_set->statistics().growth_error;
  EXPECT_NE(error.find("/containers/"), std::string::npos) << error;
  EXPECT_NE(error.find("errors of its file system and its disk"), std::string::npos) << error;
  std::vector<AllocatedSlot> slots;
  const Status status = m_set->allocate(64 * kMiB, &slots);
  EXPECT_NE(status.message().find("errors of its file system and its disk"), std::string::npos) << status.to_string();
  m_env.clear_faults();
  EXPECT_TRUE(m_set->promise(16 * kMiB, Urgency::usual));
  EXPECT_EQ(m_set->statistics().growth_error, "");
}

// Log and tree have used it up, and the operator frees some space.
TEST_F(SpacePromisesTest, RoomThatComesBackIsTheReservesFirst) {
  fill(64 * kKiB);
  m_env.set_capacity(m_env.allocated_bytes());
  while (m_set->statistics().reserve_bytes > 0) {
    ASSERT_TRUE(m_set->make_room());
    m_env.set_capacity(m_env.allocated_bytes());
  }
  m_env.set_capacity(m_env.allocated_bytes() + 384 * kKiB);
  const uint64_t before = m_env.allocated_bytes();
  EXPECT_FALSE(m_set->promise(128 * kKiB, Urgency::late));
  EXPECT_EQ(m_env.allocated_bytes(), before);
}

// Log and tree on another file system: what they need, nothing here makes up for.
TEST_F(SpacePromisesTest, WhatIsShortWhereLogAndTreeLieIsAskedThere) {
  m_options.metadata_reserve = std::make_shared<SpaceReserve>();
  SpaceReserve& there = *m_options.metadata_reserve;
  check(m_env.create_directory(vtkv::kSimOtherFileSystem));
  check(there.open(&m_env, vtkv::kSimOtherFileSystem, 512 * kKiB));
  check(there.settle());
  open();
  EXPECT_TRUE(m_set->promise(0, Urgency::usual));
  const auto lose = [&](unsigned slices) {
    for (unsigned slice = 0; slice < slices; ++slice) {
      bool gave = false;
      check(there.give_slice(&gave));
      ASSERT_TRUE(gave);
      m_env.set_other_capacity(m_env.other_allocated_bytes());  // and used by the log
    }
  };
  lose(5);
  EXPECT_FALSE(m_set->promise(0, Urgency::usual));
  EXPECT_FALSE(m_set->promise(4 * kKiB, Urgency::usual));
  EXPECT_TRUE(m_set->promise(0, Urgency::late));
  lose(2);
  EXPECT_FALSE(m_set->promise(0, Urgency::late));
  EXPECT_TRUE(m_set->promise(0, Urgency::privileged));
  m_env.set_other_capacity(m_env.other_allocated_bytes() + 512 * kKiB);
  EXPECT_TRUE(m_set->promise(0, Urgency::usual));
  m_env.set_capacity(m_env.allocated_bytes());  // of data alone
  while (m_set->statistics().reserve_bytes > 0) {
    ASSERT_TRUE(m_set->make_room());
    m_env.set_capacity(m_env.allocated_bytes());
  }
  EXPECT_TRUE(m_set->promise(0, Urgency::usual));
}

TEST_F(SpacePromisesTest, WithTheReserveHalfGoneNothingUsualFindsRoom) {
  EXPECT_TRUE(m_set->promise(0, Urgency::usual));
  m_env.set_capacity(m_env.allocated_bytes());
  for (unsigned slice = 0; slice < 5; ++slice) {
    ASSERT_TRUE(m_set->make_room());
    m_env.set_capacity(m_env.allocated_bytes());  // and used by the log
  }
  EXPECT_FALSE(m_set->promise(0, Urgency::usual));
  EXPECT_TRUE(m_set->promise(0, Urgency::late));
  EXPECT_TRUE(m_set->promise(0, Urgency::privileged));
}

}  // namespace swimstore
