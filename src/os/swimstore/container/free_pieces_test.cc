// SPDX-License-Identifier: LGPL-2.1-or-later
// How free space lies, as a fragmentation score tells it. Containers on a simulated host; the test plays the database's
// part.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "swimstore/container/container_set.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr unsigned k64K = 4, k256K = 6, k1M = 8, k2M = 9, k4M = 10;
constexpr uint64_t kChunkBytes = 4 * kMiB;

TEST(FreePiecesTest, TheScoreIsOfTheLogarithmOfThePieces) {
  FreePieces pieces;
  EXPECT_EQ(0, pieces.score());
  pieces.add(1);
  EXPECT_EQ(1, pieces.score());
  pieces = {};
  pieces.add(1024);  // 4 MiB
  pieces.add(5000);
  EXPECT_EQ(0, pieces.score());
  EXPECT_EQ(2u, pieces.sizes[k4M].pieces);
  pieces = {};
  pieces.add(32, 7);  // 128 KiB
  EXPECT_DOUBLE_EQ(0.5, pieces.score());
  EXPECT_EQ(7u, pieces.sizes[5].pieces);
  EXPECT_EQ(7 * 128 * kKiB, pieces.bytes());
  pieces.add(33, 0);
  FreePieces more;
  more.add(1024, 7);
  pieces += more;
  EXPECT_NEAR(0.5 / 33, pieces.score(), 1e-12);  // each byte counts
}

class FreePiecesOfContainersTest : public testing::Test {
 protected:
  FreePiecesOfContainersTest() : m_env({}) {
    m_options.chunk_bytes = kChunkBytes;
    m_options.primed_ahead_bytes = 4 * kKiB;
    m_options.reserve_bytes = 64 * kKiB;
    check(ContainerSet::create(&m_env, "/containers", m_options));
    check(ContainerSet::open(&m_env, "/containers", m_options, &m_set));
    check(m_set->begin_recovery());
    check(m_set->finish_recovery());
  }
  ~FreePiecesOfContainersTest() override { m_set.reset(); }

  static void check(const vtkv::Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }

  // Neighbours, owned.
  std::vector<SlotBlocks> own(uint64_t bytes, unsigned count) {
    AllocationDelta delta;
    for (unsigned i = 0; i < count; ++i) {
      std::vector<AllocatedSlot> slots;
      check(m_set->allocate(bytes, &slots));
      EXPECT_EQ(1u, slots.size());
      delta.allocated.push_back(slots[0].blocks());
    }
    m_set->apply(++m_sequence, delta);
    m_env.run_until_idle();
    return delta.allocated;
  }
  // And nobody may need it after a crash any more.
  void free(const std::vector<SlotBlocks>& blocks) {
    m_set->apply(++m_sequence, {.allocated = {}, .freed = blocks});
    m_set->set_reuse_horizon(m_sequence);
    m_env.run_until_idle();
  }
  uint64_t pieces(unsigned size) const { return m_set->free_pieces().sizes[size].pieces; }

  vtkv::SimEnv m_env;
  ContainerOptions m_options;
  std::unique_ptr<ContainerSet> m_set;
  vtkv::SequenceNumber m_sequence = 0;
};

}  // namespace

TEST_F(FreePiecesOfContainersTest, NeighboursAreOnePiece) {
  // Three words of 64 slots in the bitmaps. The last stays, for there may be free ones behind it.
  std::vector<SlotBlocks> slots = own(64 * kKiB, 193);
  ASSERT_EQ(192u, slots.back().slot.index);
  slots.pop_back();
  const FreePieces before = m_set->free_pieces();
  std::vector<SlotBlocks> even, odd;
  for (size_t i = 0; i < slots.size(); ++i) {
    (slots[i].slot.index % 2 == 0 ? even : odd).push_back(slots[i]);
  }
  free(even);
  EXPECT_EQ(before.sizes[k64K].pieces + 96, pieces(k64K));
  EXPECT_EQ(before.bytes() + 6 * kMiB, m_set->free_pieces().bytes());
  const double scattered = m_set->free_pieces().score();
  free(odd);
  EXPECT_EQ(before.sizes[k64K].pieces, pieces(k64K));
  EXPECT_EQ(before.sizes[k4M].pieces + 1, pieces(k4M));
  EXPECT_EQ(before.bytes() + 12 * kMiB, m_set->free_pieces().bytes());
  EXPECT_LT(m_set->free_pieces().score(), scattered / 2);
}

TEST_F(FreePiecesOfContainersTest, APieceGoesOverTheEndsOfWords) {
  const std::vector<SlotBlocks> slots = own(64 * kKiB, 192);
  const FreePieces before = m_set->free_pieces();
  std::vector<SlotBlocks> middle;
  for (const SlotBlocks& slot : slots) {
    if (slot.slot.index >= 34 && slot.slot.index < 94) {
      middle.push_back(slot);
    }
  }
  free(middle);
  EXPECT_EQ(before.sizes[k2M].pieces + 1, pieces(k2M));  // 3.75 MiB; the halves would have 1.875
  EXPECT_EQ(before.sizes[k1M].pieces, pieces(k1M));
}

TEST_F(FreePiecesOfContainersTest, FragmentsOfASplitSlotCountOnce) {
  const std::vector<SlotBlocks> slots = own(256 * kKiB, 16);
  const FreePieces before = m_set->free_pieces();
  SlotBlocks one = slots[3], eight = slots[3];
  one.first = 5;
  one.count = 1;
  eight.first = 8;
  eight.count = 8;
  free({one, eight});
  EXPECT_EQ(before.sizes[0].pieces + 1, pieces(0));
  EXPECT_EQ(before.sizes[3].pieces + 1, pieces(3));
  EXPECT_EQ(before.bytes() + 9 * kBlockBytes, m_set->free_pieces().bytes());
  EXPECT_EQ(before.sizes[k256K].pieces, pieces(k256K));
}

}  // namespace swimstore
