// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/format/slot_references.h"

#include <gtest/gtest.h>

#include <random>

namespace swimstore {
namespace {

using Counts = SlotReferences::Counts;

TEST(SlotReferences, GoldenBytes) {
  EXPECT_EQ(SlotReferences::encode(Counts{1, 2, 2, 1, 1, 1, 5, 0}),
            std::string("\x02"           // version
                        "\x01\x02\x00"   // 1 block on: 2 blocks with 2 references
                        "\x03\x01\x03",  // 3 blocks on: 1 block with 5
                        7));
}

TEST(SlotReferences, NothingIsKeptOfBlocksWithOneOrNone) { EXPECT_EQ(SlotReferences::encode(Counts{1, 0, 1, 1}), ""); }

TEST(SlotReferences, DecodesWhatItEncoded) {
  std::mt19937 random(5);
  for (int round = 0; round < 1000; ++round) {
    Counts counts(1 + random() % 64);
    for (uint32_t& count : counts) {
      count = 1 + random() % 3;
    }
    const std::string value = SlotReferences::encode(counts);
    Counts decoded(counts.size(), 1);
    ASSERT_EQ(value.empty() || SlotReferences::decode(value, decoded), true);
    ASSERT_EQ(decoded, counts);
  }
}

TEST(SlotReferences, RefusesWhatCannotBe) {
  Counts counts(8, 1);
  EXPECT_FALSE(SlotReferences::decode("", counts));
  EXPECT_FALSE(SlotReferences::decode("\x02", counts));
  EXPECT_FALSE(SlotReferences::decode("\x05", counts));                             // version 1: a single count
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x00\x00", 4), counts));  // a run of no block
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x09\x00", 4), counts));  // past the slot's end
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x01", 3), counts));
  EXPECT_FALSE(SlotReferences::decode(std::string("\x02\x00\x01\xff\xff\xff\xff\x0f", 8), counts));
  EXPECT_TRUE(SlotReferences::decode(std::string("\x02\x00\x08\x00", 4), counts));
}

}  // namespace
}  // namespace swimstore
