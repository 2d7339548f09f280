// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/util/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace vtkv {
namespace {

TEST(Histogram, EmptyAnswersZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.percentile(0.5), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 0; value < 10; ++value) {
    histogram.add(value);
  }
  EXPECT_EQ(histogram.percentile(0.1), 0U);
  EXPECT_EQ(histogram.percentile(0.5), 4U);
  EXPECT_EQ(histogram.percentile(1.0), 9U);
}

TEST(Histogram, PercentilesAreAtMostASixteenthTooHigh) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 100000; ++value) {
    histogram.add(value);
  }
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = fraction * 100000;
    const auto answer = static_cast<double>(histogram.percentile(fraction));
    EXPECT_GE(answer, exact);
    EXPECT_LE(answer, exact * (1 + 1.0 / 16));
  }
  EXPECT_EQ(histogram.percentile(1), 100000U);
}

TEST(Histogram, TakesTheWholeRange) {
  Histogram histogram;
  histogram.add(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(histogram.percentile(0.5), std::numeric_limits<uint64_t>::max());
}

TEST(Histogram, AVeryLargeSampleHidesNoSmallOne) {
  Histogram histogram;
  histogram.add(5);
  histogram.add(1ULL << 40);
  EXPECT_EQ(histogram.percentile(0.5), 5U);
}

TEST(Histogram, MergeAddsUp) {
  Histogram a;
  Histogram b;
  a.add(1);
  b.add(3);
  b.add(1000);
  a.merge(b);
  EXPECT_EQ(a.count(), 3U);
  EXPECT_EQ(a.max(), 1000U);
  EXPECT_EQ(a.percentile(0.6), 3U);
}

TEST(Histogram, ThreadsLoseNothing) {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&histogram] {
      for (uint64_t value = 0; value < 10000; ++value) {
        histogram.add(value);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(histogram.count(), 40000U);
  EXPECT_EQ(histogram.max(), 9999U);
}

}  // namespace
}  // namespace vtkv
