// SPDX-License-Identifier: LGPL-2.1-or-later
// Containers on a full host, in the simulator, without a database: the test plays its part.

#include <gtest/gtest.h>

#include <cstring>

#include "swimstore/container/container_set.h"
#include "swimstore/format/quarantine_record.h"
#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/mutations.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::SequenceNumber;
using vtkv::SimEnv;
using vtkv::SimProfile;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

class ContainerSpaceTest : public testing::Test {
 protected:
  ContainerSpaceTest() : m_env({.seed = 3, .profile = SimProfile::ext4, .capacity_bytes = 32 * kMiB, .record = false}) {
    m_options.chunk_bytes = 64 * kKiB;
    m_options.primed_class_max = 1;
    m_options.primed_ahead_bytes = 64 * kKiB;
    m_options.reserve_bytes = 512 * kKiB;
    check(ContainerSet::create(&m_env, "/containers", m_options));
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    check(m_set->finish_recovery());
  }
  ~ContainerSpaceTest() override { m_set.reset(); }

  static void check(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }

  bool write(uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    if (!m_set->allocate(bytes, &slots).ok()) {
      return false;
    }
    AllocationDelta delta;
    uint64_t held = 0;
    for (const AllocatedSlot& slot : slots) {
      delta.allocated.push_back(slot.blocks());
      m_owned.push_back(slot.blocks());
      held += slot.bytes;
    }
    EXPECT_EQ(held, bytes);
    m_set->apply(++m_sequence, delta);
    return true;
  }
  void free_all() {
    m_set->apply(++m_sequence, {{}, m_owned});
    m_owned.clear();
    m_set->set_reuse_horizon(m_sequence);
  }
  uint64_t fill(uint64_t bytes) {
    uint64_t writes = 0;
    while (write(bytes)) {
      writes++;
    }
    return writes;
  }
  void checkpoint() {
    std::vector<vtkv::CheckpointEntry> entries;
    m_set->collect_pages(++m_sequence, &entries);
    m_set->checkpoint_durable(m_sequence);
    m_env.advance(std::chrono::milliseconds(200));
  }
  void reopen() {
    m_set.reset();
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    check(m_set->finish_recovery());
  }
  void expect_told(const std::function<void()>& fail, const std::string& what) {
    m_options.on_background_error = [this](const vtkv::BackgroundError& error) { m_told.push_back(error); };
    reopen();
    fail();
    ASSERT_EQ(m_told.size(), 1u);
    EXPECT_EQ(m_told[0].work->name.substr(0, what.size()), what);
    EXPECT_FALSE(m_told[0].status.ok());
    EXPECT_EQ(m_set->background_errors().size(), 1u);
    m_env.advance(std::chrono::seconds(60));
    EXPECT_EQ(m_told.size(), 1u);
    EXPECT_GT(m_set->background_errors().at(0).attempts, 1u);
    m_env.clear_faults();
    m_env.advance(std::chrono::minutes(6));
    EXPECT_TRUE(m_set->background_errors().empty());
    ASSERT_EQ(m_told.size(), 2u);
    EXPECT_TRUE(m_told[1].status.ok());
  }
  // Frees slots of 256 KiB, each a chunk, all of them primed, and lets the punch of one end half-way. Then all that
  // is left is taken. How many slots are called primed whose first block a sync of another file would not cover?
  uint64_t slots_wrongly_primed_after_a_failed_punch();

  SimEnv m_env;
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  SequenceNumber m_sequence = 0;
  std::vector<SlotBlocks> m_owned;
  std::vector<vtkv::BackgroundError> m_told;
};

uint64_t ContainerSpaceTest::slots_wrongly_primed_after_a_failed_punch() {
  fill(256 * kKiB);
  for (const SlotBlocks& blocks : m_owned) {
    m_set->mark_primed({blocks.slot});
  }
  free_all();
  const std::string path = "/containers/256K";
  uint64_t bytes = 0;
  {
    std::unique_ptr<vtkv::File> file;
    check(m_env.open_file(path, {}, &file));
    check(file->size(&bytes));
    vtkv::AlignedBuffer data(bytes);
    std::memset(data.data(), '1', bytes);
    check(file->write(0, data.data(), bytes));
  }
  for (uint64_t slot = 0; slot < bytes / (256 * kKiB); slot++) {
    m_env.set_bad(vtkv::SimBad::punches, path, slot * 256 * kKiB + 128 * kKiB, (slot + 1) * 256 * kKiB);
  }
  EXPECT_FALSE(write(64 * kMiB));  // from now on what can be spared is withheld
  checkpoint();
  checkpoint();
  EXPECT_EQ(m_set->statistics().punched_bytes_total, 0u);
  std::unique_ptr<vtkv::File> file;
  check(m_env.open_file(path, {}, &file));
  uint64_t wrong = 0;
  std::vector<AllocatedSlot> slots;
  while (m_set->allocate(256 * kKiB, &slots).ok() && slots.back().address.size_class == 6) {
    vtkv::AlignedBuffer first(kBlockBytes);
    check(file->read(slots.back().address.byte_offset(), kBlockBytes, first.data()));
    wrong += slots.back().primed && first.data()[0] != '1';  // a hole, or space that was given anew
  }
  EXPECT_FALSE(slots.empty());
  return wrong;
}

TEST_F(ContainerSpaceTest, WhatAPunchWasTriedOnIsNotPrimed) {
  EXPECT_EQ(slots_wrongly_primed_after_a_failed_punch(), 0u);
}

TEST_F(ContainerSpaceTest, TrustInAFailedPunchIsNoticed) {
  VTKV_NEEDS_MUTATIONS();
  const vtkv::ScopedMutation broken(vtkv::Mutation::failed_punch_trusted);
  reopen();
  EXPECT_GT(slots_wrongly_primed_after_a_failed_punch(), 0u);
}

// The worker is left idle by the error, and goes on when something happens.
TEST_F(ContainerSpaceTest, PunchingGoesOnAfterAnError) {
  fill(256 * kKiB);
  free_all();
  m_env.set_bad(vtkv::SimBad::punches, "/containers/256K", 0, uint64_t{1} << 40);
  EXPECT_TRUE(write(16 * kKiB));  // asks for space, so that chunks are withheld
  checkpoint();
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(m_set->statistics().punched_bytes_total, 0u);
  m_env.clear_faults();
  checkpoint();
  checkpoint();
  EXPECT_GT(m_set->statistics().punched_bytes_total, 0u);
}

// None of these slots is primed, but the older copy of the manifest may say otherwise: it is of a time before the store
// was opened. Each of them tells once, stays known while it fails, is tried again without any transaction, and ends by
// itself.
TEST_F(ContainerSpaceTest, APunchThatFailsIsToldOf) {
  expect_told(
      [this] {
        m_env.set_bad(vtkv::SimBad::punches, "/containers/256K", 0, 64 * kMiB);
        fill(256 * kKiB);
        free_all();
        EXPECT_FALSE(write(64 * kMiB));  // from now on what can be spared is withheld
        checkpoint();
        checkpoint();
      },
      "giving free space back");
}

TEST_F(ContainerSpaceTest, PrimingThatFailsIsToldOf) {
  expect_told(
      [this] {
        m_env.fail_nth(vtkv::SimCall::sync, 1, Status::from_errno(EIO, "injected"), true);
        for (unsigned i = 0; i < 16; ++i) {
          EXPECT_TRUE(write(8 * kKiB));
        }
        m_env.advance(std::chrono::milliseconds(200));
      },
      "writing zeros");
}

// No transaction meets them.
TEST_F(ContainerSpaceTest, SlotsThatCannotBePrimedAreQuarantined) {
  const std::vector<SlotAddress> bad = {{1, 20}, {1, 21}};
  m_options.on_background_error = [this](const vtkv::BackgroundError& error) { m_told.push_back(error); };
  reopen();
  m_env.set_bad(vtkv::SimBad::writes, "/containers/8K", 20 * 8 * kKiB, 22 * 8 * kKiB);
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_TRUE(write(8 * kKiB));
  }
  m_env.advance(std::chrono::seconds(60));
  EXPECT_TRUE(m_set->background_errors().empty());
  ASSERT_EQ(m_told.size(), 2u);
  EXPECT_NE(m_told[0].status.message().find("2 slots of /containers/8K from slot 20 on quarantined"), std::string::npos)
      << m_told[0].status.message();
  EXPECT_TRUE(m_told[1].status.ok());
  EXPECT_EQ(m_set->quarantined(), bad);
  const uint64_t primed = m_set->statistics().primed_bytes_total;
  EXPECT_GT(primed, 0u);
  for (const bool again : {false, true}) {
    std::vector<AllocatedSlot> slots;
    while (m_set->allocate(8 * kKiB, &slots).ok()) {
    }
    EXPECT_GT(slots.size(), 22u);
    for (const AllocatedSlot& slot : slots) {
      EXPECT_FALSE(slot.address.container() == 1 &&
                   (slot.address.whole().index == 20 || slot.address.whole().index == 21));
    }
    m_set->abandon(slots);
    if (!again) {
      reopen();
      EXPECT_EQ(m_set->quarantined(), bad);
    }
  }
}

// Then it is no slot's fault.
TEST_F(ContainerSpaceTest, NoSlotIsQuarantinedWhereNothingCanBeWritten) {
  m_env.set_bad(vtkv::SimBad::writes, "/containers/8K", 0, 64 * kMiB);
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_TRUE(write(8 * kKiB));
  }
  m_env.advance(std::chrono::minutes(60));
  EXPECT_FALSE(m_set->background_errors().empty());
  EXPECT_TRUE(m_set->quarantined().empty());
}

TEST_F(ContainerSpaceTest, SlotsThatTheQuarantineHasNoRoomForAreNotHandedOut) {
  vtkv::AlignedBuffer block(4 * kKiB);
  block.resize(4 * kKiB);
  m_env.set_bad(vtkv::SimBad::writes, "/containers/4K", 0, 64 * kMiB);
  for (uint64_t slot = 0; slot + 1 < QuarantineRecord::kSlotsMax; ++slot) {
    m_set->note_failed_write(m_set->file(0), slot * 4 * kKiB, {{block.data(), 4 * kKiB}});
  }
  ASSERT_EQ(m_set->quarantined().size(), QuarantineRecord::kSlotsMax - 1);
  m_options.on_background_error = [this](const vtkv::BackgroundError& error) { m_told.push_back(error); };
  reopen();
  EXPECT_TRUE(write(kMiB));
  free_all();  // nothing is primed while what is free may be wanted
  m_env.set_bad(vtkv::SimBad::writes, "/containers/8K", 20 * 8 * kKiB, 22 * 8 * kKiB);
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_TRUE(write(8 * kKiB));
  }
  m_env.advance(std::chrono::seconds(60));
  ASSERT_FALSE(m_told.empty());
  EXPECT_NE(m_told[0].status.message().find("is full"), std::string::npos) << m_told[0].status.message();
  std::vector<AllocatedSlot> slots;
  while (m_set->allocate(8 * kKiB, &slots).ok()) {
  }
  for (const AllocatedSlot& slot : slots) {
    EXPECT_FALSE(slot.address.container() == 1 &&
                 (slot.address.whole().index == 20 || slot.address.whole().index == 21));
  }
}

// A word of the disk is asked for.
TEST_F(ContainerSpaceTest, WantOfMemoryQuarantinesNothing) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(EIO, "injected"), true);
  m_env.fail_nth(vtkv::SimCall::write, 1, Status::from_errno(ENOMEM, "injected"), true);
  for (unsigned i = 0; i < 16; ++i) {
    write(8 * kKiB);
  }
  m_env.advance(std::chrono::seconds(60));
  EXPECT_TRUE(m_set->quarantined().empty());
}

TEST_F(ContainerSpaceTest, NothingIsPunchedBeforeTheFirstCheckpoint) {
  fill(256 * kKiB);
  free_all();
  EXPECT_FALSE(write(64 * kMiB));  // asks for space
  m_env.advance(std::chrono::seconds(2));
  EXPECT_EQ(m_set->statistics().punched_bytes_total, 0u);
  checkpoint();
  m_env.advance(std::chrono::seconds(2));
  EXPECT_GT(m_set->statistics().punched_bytes_total, 0u);
}

TEST_F(ContainerSpaceTest, FillsTheHostDownToTheReserve) {
  const uint64_t writes = fill(64 * kKiB);
  EXPECT_GT(writes * 64 * kKiB, 29 * kMiB);
  vtkv::FileSystemInfo host;
  check(m_env.file_system_info("/", &host));
  EXPECT_GT(host.available_bytes, 0u);
  std::vector<AllocatedSlot> slots;
  const Status status = m_set->allocate(64 * kKiB, &slots);
  EXPECT_TRUE(status.is_no_space());
  EXPECT_TRUE(slots.empty());
}

TEST_F(ContainerSpaceTest, SmallerSlotsServeALargeWriteOnAFullHost) {
  std::vector<SlotAddress> small;
  ASSERT_GT(fill(8 * kKiB), 1000u);
  ASSERT_FALSE(write(64 * kKiB));
  free_all();
  // The class of 64 KiB cannot grow; 8 KiB slots are free in plenty.
  EXPECT_TRUE(write(64 * kKiB));
  EXPECT_TRUE(write(1 * kMiB));
}

TEST_F(ContainerSpaceTest, LargerSlotsServeASmallWriteOnAFullHost) {
  fill(64 * kKiB);
  fill(4 * kKiB);
  free_all();
  EXPECT_TRUE(write(8 * kKiB));
}

TEST_F(ContainerSpaceTest, SpaceOfOneClassBecomesAnothers) {
  const uint64_t large = fill(256 * kKiB);
  checkpoint();
  free_all();
  m_env.advance(std::chrono::milliseconds(200));
  uint64_t small_bytes = 0;
  while (small_bytes < large * 256 * kKiB * 9 / 10) {
    if (write(16 * kKiB)) {
      small_bytes += 16 * kKiB;
      continue;
    }
    // Holes need checkpoints that say that the slots are unprimed.
    const uint64_t before = m_set->statistics().punched_bytes_total;
    checkpoint();
    checkpoint();
    ASSERT_GT(m_set->statistics().punched_bytes_total, before);
  }
  // Served by slots of its own class, not each by a large one.
  EXPECT_GT(m_set->statistics().classes[2].owned * 16 * kKiB, large * 256 * kKiB / 2);
}

TEST_F(ContainerSpaceTest, TheReserveGoesWhenOthersFillTheHostAndComesBack) {
  const uint64_t before = m_env.allocated_bytes();
  write(4 * kKiB);
  m_env.advance(std::chrono::milliseconds(200));
  m_env.set_capacity(m_env.allocated_bytes() + 4 * kKiB);
  write(4 * kKiB);
  m_env.advance(std::chrono::milliseconds(200));
  vtkv::FileSystemInfo host;
  check(m_env.file_system_info("/", &host));
  EXPECT_GE(host.available_bytes, 64 * kKiB);  // metadata can live on it
  EXPECT_EQ(m_set->statistics().growable_bytes, 0u);  // data cannot
  m_env.set_capacity(32 * kMiB);
  for (int i = 0; i < 10; i++) {
    write(4 * kKiB);
    m_env.advance(std::chrono::milliseconds(200));
  }
  EXPECT_GE(m_env.allocated_bytes(), before);
}

TEST_F(ContainerSpaceTest, TheLogGetsTheReserveSliceBySliceAtOnce) {
  m_env.set_capacity(m_env.allocated_bytes());
  vtkv::FileSystemInfo host;
  for (uint64_t slice = 1; slice <= 8; slice++) {
    ASSERT_TRUE(m_set->make_room());
    check(m_env.file_system_info("/", &host));
    EXPECT_EQ(host.available_bytes, slice * 64 * kKiB);
  }
  EXPECT_FALSE(m_set->make_room());
  EXPECT_EQ(m_set->statistics().growable_bytes, 0u);  // data gets nothing of it
}

TEST_F(ContainerSpaceTest, AFailedGrowthIsNoSpaceAndLeavesNothingTaken) {
  m_env.fail_nth(vtkv::SimCall::allocate, 1, Status::from_errno(ENOSPC, "simulated"), true);
  std::vector<AllocatedSlot> slots;
  Status status;
  while ((status = m_set->allocate(1 * kMiB, &slots)).ok()) {
    m_set->abandon(slots);
    slots.clear();
    ASSERT_TRUE(false) << "there is no slot of that size, nor room for one";
  }
  EXPECT_TRUE(status.is_no_space());
  for (const auto& it : m_set->statistics().classes) {
    EXPECT_EQ(it.reserved, 0u);
  }
  m_env.clear_faults();
  EXPECT_TRUE(m_set->allocate(1 * kMiB, &slots).ok());
}

// Takes all it can and lets all go, with priming and reclaim at work in between: nothing gets lost.
TEST_F(ContainerSpaceTest, CapacityIsTheSameAfterManyRounds) {
  const uint64_t first = fill(32 * kKiB);
  for (int round = 0; round < 6; round++) {
    free_all();
    checkpoint();
    fill(4 * kKiB << round);
    free_all();
    checkpoint();
    checkpoint();
  }
  uint64_t again = fill(32 * kKiB);
  for (int i = 0; i < 100 && again < first * 9 / 10; i++) {
    checkpoint();
    again += fill(32 * kKiB);
  }
  EXPECT_GE(again, first * 9 / 10);
}

}  // namespace
}  // namespace swimstore
