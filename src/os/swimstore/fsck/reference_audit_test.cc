// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/fsck/reference_audit.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

Extent extent(uint32_t slot_block, uint8_t count, bool shared = false, uint32_t written = 4) {
  return {.count = count,
          .shared = shared,
          .slot = {.size_class = 2, .index = 7},
          .slot_block = slot_block,
          .slot_written_blocks = written};
}

std::string add(ReferenceAudit& audit, const Extent& one) { return audit.add(one, 1); }

}  // namespace

TEST(ReferenceAuditTest, NeighboursInASlotAreFine) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 2)));
  EXPECT_EQ("", add(audit, extent(2, 2)));
  EXPECT_EQ(4u, audit.entries().begin()->second.references);
}

TEST(ReferenceAuditTest, TwoOwnersOfOneBlockAreNot) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 2)));
  EXPECT_NE("", add(audit, extent(1, 1)));
}

// A conflict with its slot's fragments, and what is asked for; nothing else.
TEST(ReferenceAuditTest, WhatRepairNeedsIsKept) {
  const Extent whole = extent(0, 2);
  Extent fragment = extent(0, 1, false, 1), alone = fragment, asked = extent(0, 2);
  fragment.slot = {.size_class = 0, .index = 4 * 7, .split_levels = 2};
  alone.slot.index = 8;
  asked.slot.index = 9;
  ReferenceAudit audit;
  ReferenceAudit::Entries kept;
  add(audit, whole);
  EXPECT_NE("", add(audit, fragment));
  add(audit, alone);
  add(audit, asked);
  audit.move_damaged({asked.slot.packed()}, &kept);
  EXPECT_EQ(3u, kept.size());
  for (const Extent& one : {whole, fragment, asked}) {
    EXPECT_TRUE(kept.contains(one.slot.packed()));
  }
}

TEST(ReferenceAuditTest, SharedBlocksMayHaveManyOwners) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 4, true)));
  EXPECT_EQ("", add(audit, extent(0, 4, true)));
  EXPECT_EQ(8u, audit.entries().begin()->second.references);
}

// The tree may count blocks of a slot that were never written: the slot is larger than what fills it.
TEST(ReferenceAuditTest, BlocksThatWereNeverWrittenHaveNoReferences) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 3, true, 3)));
  EXPECT_EQ("", add(audit, extent(0, 3, true, 3)));
  audit.add_counts({2, 7}, 0, {2, 2, 2, 5});
  const ReferenceAudit::Entry& entry = audit.entries().begin()->second;
  EXPECT_EQ(0u, entry.found_of(3));
  EXPECT_FALSE(entry.has_more_than_kept());
  EXPECT_TRUE(entry.has_fewer_than_kept());
  EXPECT_EQ((SlotReferences::Counts{2, 2, 2, 0}), entry.counts());
}

TEST(ReferenceAuditTest, WhatWasNeverWrittenLeaksOnlyWhereASlotIsSplit) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 2, false, 3)));
  const SlotBlocks owned = SlotBlocks::all({2, 7});
  EXPECT_EQ(audit.unreferenced(owned, false), (std::vector<SlotBlocks>{{{2, 7}, 2, 1, 3}}));
  EXPECT_EQ(audit.unreferenced(owned, true), (std::vector<SlotBlocks>{{{2, 7}, 2, 2, 4}}));
  EXPECT_EQ(audit.unreferenced(SlotBlocks::all({2, 8}), false), std::vector<SlotBlocks>{SlotBlocks::all({2, 8})});
}

TEST(ReferenceAuditTest, ExtentsMustAgreeOnWhatWasWritten) {
  ReferenceAudit audit;
  EXPECT_EQ("", add(audit, extent(0, 1, false, 4)));
  EXPECT_NE("", add(audit, extent(1, 1, false, 3)));
}

}  // namespace swimstore
