#include "vtkv/mem/range_removals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace vtkv {
namespace {

TEST(RangeRemovals, EmptyCoversNothing) {
  RangeRemovals removals;
  EXPECT_TRUE(removals.empty());
  EXPECT_EQ(removals.covering("a", 100), 0u);
  EXPECT_EQ(removals.covered_until("a", 100, 0), "");
  EXPECT_FALSE(removals.covered_from("a", 100, 0));
  EXPECT_FALSE(removals.overlaps("", ""));
}

TEST(RangeRemovals, AnEmptyOrReversedRangeIsNothing) {
  RangeRemovals removals;
  removals.add(1, "b", "b");
  removals.add(2, "c", "b");
  EXPECT_TRUE(removals.empty());
}

TEST(RangeRemovals, CoversFromBeginUpToButNotEnd) {
  RangeRemovals removals;
  removals.add(5, "b", "d");
  EXPECT_EQ(removals.covering("a", 9), 0u);
  EXPECT_EQ(removals.covering("b", 9), 5u);
  EXPECT_EQ(removals.covering("czz", 9), 5u);
  EXPECT_EQ(removals.covering("d", 9), 0u);
}

TEST(RangeRemovals, AReaderOfThePastDoesNotSeeALaterRemoval) {
  RangeRemovals removals;
  removals.add(5, "b", "d");
  removals.add(9, "b", "d");
  EXPECT_EQ(removals.covering("c", 4), 0u);
  EXPECT_EQ(removals.covering("c", 5), 5u);
  EXPECT_EQ(removals.covering("c", 8), 5u);
  EXPECT_EQ(removals.covering("c", 9), 9u);
}

TEST(RangeRemovals, JumpsOverNeighbouringFragments) {
  RangeRemovals removals;
  removals.add(5, "b", "d");
  removals.add(6, "d", "f");
  removals.add(2, "f", "h");
  EXPECT_EQ(removals.covered_until("c", 9, 3), "f");
  EXPECT_EQ(removals.covered_until("c", 9, 1), "h");
  EXPECT_EQ(removals.covered_until("c", 5, 1), "d");
  EXPECT_EQ(removals.covered_from("e", 9, 3), "b");
  EXPECT_EQ(removals.covered_from("e", 9, 5), "d");
}

TEST(RangeRemovals, OverlapsKnowsTheGaps) {
  RangeRemovals removals;
  removals.add(5, "b", "d");
  removals.add(6, "m", "p");
  EXPECT_FALSE(removals.overlaps("a", "b"));
  EXPECT_TRUE(removals.overlaps("a", "c"));
  EXPECT_TRUE(removals.overlaps("c", "c1"));
  EXPECT_FALSE(removals.overlaps("d", "m"));
  EXPECT_TRUE(removals.overlaps("d", ""));
  EXPECT_FALSE(removals.overlaps("p", ""));
}

// The plain definition, over a list of removals, is the model.
TEST(RangeRemovals, AgreesWithAListOfRemovals) {
  struct Removal {
    SequenceNumber sequence;
    std::string begin, end;
  };
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    RangeRemovals removals;
    std::vector<Removal> model;
    const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 20)); };
    for (int i = 0; i < 40; ++i) {
      Removal removal{1 + random() % 60, key(), key()};
      removals.add(removal.sequence, removal.begin, removal.end);
      model.push_back(removal);
      for (char c = 'a'; c <= 'v'; ++c) {
        const std::string probe(1, c);
        const SequenceNumber at_most = random() % 64;
        SequenceNumber expected = 0;
        for (const auto& m : model) {
          if (m.begin <= probe && probe < m.end && m.sequence <= at_most) {
            expected = std::max(expected, m.sequence);
          }
        }
        ASSERT_EQ(removals.covering(probe, at_most), expected) << "seed " << seed;
        const SequenceNumber newer_than = random() % 64;
        const std::string until = removals.covered_until(probe, at_most, newer_than);
        const auto from = removals.covered_from(probe, at_most, newer_than);
        ASSERT_EQ(!until.empty(), expected > newer_than);
        ASSERT_EQ(from.has_value(), expected > newer_than);
        for (char other = 'a'; other <= 'v'; ++other) {
          const std::string inside(1, other);
          if ((from && *from <= inside && inside <= probe) || (probe <= inside && inside < until)) {
            ASSERT_GT(removals.covering(inside, at_most), newer_than) << "seed " << seed;
          }
        }
      }
    }
    std::string last_end;
    removals.for_each([&](std::string_view begin, std::string_view end, const std::vector<SequenceNumber>& s) {
      EXPECT_LE(last_end, begin);
      EXPECT_LT(begin, end);
      EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
      last_end = end;
    });
  }
}

}  // namespace
}  // namespace vtkv
