// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace vtkv {
namespace {

// Stored values must not change: these are XXH3's published results for the empty input.
TEST(Hash, IsXxh3) { EXPECT_EQ(hash64(""), 0x2d06800538d394c2ULL); }

TEST(Hash, SeedChangesTheValue) { EXPECT_NE(hash64("key", 1), hash64("key", 2)); }

TEST(Hash, MixSpreadsOneBitOverTheWord) {
  std::set<uint64_t> values;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint64_t value = mix64(uint64_t{1} << bit);
    values.insert(value);
    EXPECT_GT(std::popcount(value), 15);
    EXPECT_LT(std::popcount(value), 49);
  }
  EXPECT_EQ(values.size(), 64U);
}

}  // namespace
}  // namespace vtkv
