// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/candidate_choice.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kSegmentBytes = 1000;

SealedSegment segment(uint64_t epoch, uint64_t bytes, uint64_t hidden_bytes = 0) {
  return {.values = {.epoch = epoch, .bytes = bytes, .hidden_bytes = hidden_bytes}, .bytes = kSegmentBytes};
}

std::vector<uint64_t> ranked(const std::vector<SealedSegment>& segments, double worthwhile = 1) {
  std::vector<uint64_t> epochs;
  for (const SealedSegment& ranked : rank_candidates(segments, 100, worthwhile)) {
    epochs.push_back(ranked.values.epoch);
  }
  return epochs;
}

using Epochs = std::vector<uint64_t>;

TEST(CandidateChoiceTest, OfTheSameAgeTheEmptierOneComesFirst) {
  EXPECT_EQ(ranked({segment(10, 800), segment(11, 100), segment(12, 400)}), (Epochs{11, 12, 10}));
}

TEST(CandidateChoiceTest, OfTheSameFillingTheOlderOneComesFirst) {
  EXPECT_EQ(ranked({segment(80, 500), segment(10, 500), segment(50, 500)}), (Epochs{10, 50, 80}));
}

TEST(CandidateChoiceTest, AnOldFullOneComesBeforeAYoungEmptyOne) {
  // 0.5 * 90 / 1.5 = 30; 0.9 * 10 / 1.1 = 8.2
  EXPECT_EQ(ranked({segment(90, 100), segment(10, 500)}), (Epochs{10, 90}));
}

TEST(CandidateChoiceTest, WhatIsHiddenDoesNotLive) {
  EXPECT_EQ(ranked({segment(10, 500), segment(10 + 1, 900, 700)}), (Epochs{11, 10}));
  EXPECT_EQ(ranked({segment(10, 900, 500)}, 0.4), (Epochs{10}));
}

TEST(CandidateChoiceTest, WhatMostlyLivesIsNotWorthIt) {
  EXPECT_EQ(ranked({segment(10, 901), segment(11, 900)}, 0.9), (Epochs{11}));
  EXPECT_TRUE(ranked({}).empty());
}

}  // namespace
}  // namespace vtkv
