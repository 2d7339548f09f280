// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/container/best_fit.h"

#include <gtest/gtest.h>

namespace swimstore {
namespace {

constexpr uint64_t kKiB = 1024;

std::string fit(uint64_t bytes) {
  std::vector<WriteSlice> slices;
  best_fit(bytes, &slices);
  std::string text;
  for (const WriteSlice& slice : slices) {
    text += (text.empty() ? "" : " ") + std::to_string(slice.bytes / kKiB) + "/" +
            std::to_string(slot_bytes(slice.size_class) / kKiB);
  }
  return text;
}

TEST(BestFit, CutsByTheTable) {
  EXPECT_EQ(fit(1), "4/4");
  EXPECT_EQ(fit(4096), "4/4");
  EXPECT_EQ(fit(4097), "8/8");
  EXPECT_EQ(fit(12 * kKiB), "12/16");         // wastes exactly a quarter
  EXPECT_EQ(fit(20 * kKiB), "16/16 4/4");     // 12 of 32 would be too much
  EXPECT_EQ(fit(24 * kKiB), "24/32");
  EXPECT_EQ(fit(36 * kKiB), "32/32 4/4");
  EXPECT_EQ(fit(44 * kKiB), "32/32 12/16");
  EXPECT_EQ(fit(60 * kKiB), "60/64");
  EXPECT_EQ(fit(2100 * kKiB), "2048/2048 52/64");
  EXPECT_EQ(fit(4096 * kKiB), "4096/4096");
  EXPECT_EQ(fit(4100 * kKiB), "4096/4096 4/4");
  EXPECT_EQ(fit(10000 * kKiB), "4096/4096 4096/4096 1808/2048");
}

TEST(BestFit, HoldsEverySizeWithLittleWaste) {
  for (uint64_t blocks = 1; blocks <= 3 * kSlotBytesMax / kBlockBytes; blocks++) {
    const uint64_t bytes = blocks * kBlockBytes;
    std::vector<WriteSlice> slices;
    best_fit(bytes, &slices);
    uint64_t held = 0;
    uint64_t slots = 0;
    for (const WriteSlice& slice : slices) {
      ASSERT_LE(slice.bytes, slot_bytes(slice.size_class));
      held += slice.bytes;
      slots += slot_bytes(slice.size_class);
    }
    ASSERT_EQ(held, bytes);
    ASSERT_LE((slots - bytes) * 4, slots) << bytes;
    ASSERT_LE(slices.size(), bytes / kSlotBytesMax + 2);
  }
}

}  // namespace
}  // namespace swimstore
