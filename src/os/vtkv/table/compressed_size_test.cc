// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/table/compressed_size.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

TEST(CompressedSize, GathersAsMuchAsIsWantedUntilSomethingWasSeen) {
  EXPECT_EQ(CompressedSize().plain_bytes(4096), 4096u);
}

TEST(CompressedSize, LearnsSlowlyThatMoreFits) {
  CompressedSize size;
  size.saw(2);
  EXPECT_EQ(size.plain_bytes(1000), 1212u);  // 0.97 · 1.25
  for (int block = 0; block < 30; ++block) {
    size.saw(2);
  }
  EXPECT_NEAR(static_cast<double>(size.plain_bytes(1000)), 1940, 2);
}

TEST(CompressedSize, LearnsAtOnceThatLessFits) {
  CompressedSize size;
  for (int block = 0; block < 30; ++block) {
    size.saw(3);
  }
  size.saw(1.5);
  EXPECT_EQ(size.plain_bytes(1000), 1455u);
  size.saw(1);
  EXPECT_EQ(size.plain_bytes(1000), 1000u) << "never less than what is wanted";
}

TEST(CompressedSize, NeverGathersFourTimesAsMuch) {
  CompressedSize size;
  for (int block = 0; block < 100; ++block) {
    size.saw(200);
  }
  EXPECT_LT(size.plain_bytes(1000), 4000u);
  EXPECT_GT(size.plain_bytes(1000), 3800u);
}

}  // namespace
}  // namespace vtkv
