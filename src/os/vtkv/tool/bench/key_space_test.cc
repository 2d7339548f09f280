// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/tool/bench/key_space.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "vtkv/tool/bench/distribution.h"

namespace vtkv::bench {
namespace {

TEST(KeySpace, KeysSortAsTheirNumbers) {
  EXPECT_LT(Key(9).view(), Key(10).view());
  EXPECT_LT(Key(999999).view(), Key(1000000).view());
  EXPECT_EQ(Key(42).view(), "0000000000000042");
  EXPECT_LT(Key(UINT32_MAX).view(), kEndOfKeys);
}

TEST(KeySpace, MissingKeysLieAmongTheOthers) {
  for (const uint64_t number : {0ull, 9ull, 10ull, 12345ull}) {
    const Key missing = Key::missing(number);
    EXPECT_EQ(missing.view().size(), kKeyBytes);
    EXPECT_GT(missing.view(), Key(number).view());
    EXPECT_LT(missing.view(), Key(number + 11).view());
    EXPECT_EQ(missing.view().find_first_not_of("0123456789"), kKeyBytes - 1);
  }
}

TEST(KeySpace, PermutationsHitEveryNumberOnce) {
  for (const uint64_t count : {1ull, 2ull, 7ull, 1000ull, 4096ull, 4097ull}) {
    std::vector<int> hits(count);
    const Permutation order(count, 5);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_LT(order(i), count);
      ++hits[order(i)];
    }
    EXPECT_EQ(hits, std::vector<int>(count, 1)) << count;
  }
}

TEST(KeySpace, PermutationsAreNoOrder) {
  const Permutation order(100000, 5);
  int ascending = 0;
  for (uint64_t i = 1; i < 1000; ++i) {
    ascending += order(i) > order(i - 1);
  }
  EXPECT_NEAR(ascending, 500, 100);
}

TEST(KeySpace, ValuesTellWhoseTheyAre) {
  const Values values(100, 1);
  std::string one, other;
  values.make(7, 1, &one);
  values.make(7, 2, &other);
  EXPECT_NE(one, other);
  EXPECT_TRUE(values.belongs(one, 7));
  EXPECT_FALSE(values.belongs(one, 8));
  EXPECT_FALSE(values.belongs(one.substr(1), 7));
}

TEST(Distribution, ZipfianRanksHaveTheirShare) {
  constexpr uint64_t kCount = 1000, kDraws = 1000000;
  double zeta = 0;
  for (uint64_t i = 1; i <= kCount; ++i) {
    zeta += std::pow(static_cast<double>(i), -Zipfian::kTheta);
  }
  const Zipfian zipfian(kCount);
  Random random(3);
  std::vector<double> share(kCount);
  for (uint64_t i = 0; i < kDraws; ++i) {
    share[zipfian.rank(random)] += 1.0 / kDraws;
  }
  EXPECT_NEAR(share[0], 1 / zeta, 0.005);
  EXPECT_NEAR(share[1], std::pow(2, -Zipfian::kTheta) / zeta, 0.005);
  double first_hundred = 0, expected = 0;
  for (size_t i = 0; i < 100; ++i) {
    first_hundred += share[i];
    expected += std::pow(static_cast<double>(i + 1), -Zipfian::kTheta) / zeta;
  }
  EXPECT_NEAR(first_hundred, expected, 0.02);
}

TEST(Distribution, UniformChoicesStayBelowTheLimit) {
  Random random(1);
  std::vector<int> hits(10);
  for (int i = 0; i < 10000; ++i) {
    ++hits.at(random.below(10));
  }
  for (const int count : hits) {
    EXPECT_NEAR(count, 1000, 200);
  }
}

}  // namespace
}  // namespace vtkv::bench
