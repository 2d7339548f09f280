// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/gc/gc_gain.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kSegmentBytes = 1000;
constexpr uint64_t kJudged = 16 * kSegmentBytes;  // emptied, from which on it is judged

SegmentValues segment(uint64_t epoch, uint64_t bytes) { return {.epoch = epoch, .entries = 1, .bytes = bytes}; }

class GcGainTest : public testing::Test {
 protected:
  void SetUp() override { m_gain.judge(m_now, kSegmentBytes, 0); }
  // So much was emptied, and the log is smaller by `gained`; others have done so much.
  void collect(uint64_t emptied, uint64_t gained, uint64_t others_count = 0, uint64_t others_bytes = 0) {
    m_gain.emptied(emptied);
    m_now.taken_bytes += others_bytes - gained;
    m_now.moved_bytes += emptied - gained;
    m_now.log_bytes += emptied - gained + others_bytes;
    m_now.others_count += others_count;
    m_gain.judge(m_now, kSegmentBytes, 100);
  }

  GcGain m_gain;
  GcGain::Measure m_now{.taken_bytes = 100'000, .log_bytes = 0, .moved_bytes = 0, .others_count = 0};
};

TEST_F(GcGainTest, GoesOnWhileTheLogBecomesSmaller) {
  for (int i = 0; i < 4; ++i) {
    collect(kJudged, 2 * kSegmentBytes);
    EXPECT_FALSE(m_gain.rests());
  }
}

TEST_F(GcGainTest, RestsWhenItDoesNot) {
  collect(kJudged - 1, 0);
  EXPECT_FALSE(m_gain.rests());  // too little to judge
  collect(1, 0);
  EXPECT_TRUE(m_gain.rests());
}

TEST_F(GcGainTest, WhatOthersWroteIsNotItsFault) {
  collect(kJudged, 0, 10, 10'000);
  EXPECT_FALSE(m_gain.rests());
  collect(kJudged, 2 * kSegmentBytes, 1, 300);
  EXPECT_FALSE(m_gain.rests());
  collect(kJudged, kSegmentBytes / 2, 1, 300);
  EXPECT_TRUE(m_gain.rests());
}

TEST_F(GcGainTest, AfterTheCheckpointOnlyWhatHasDiedSinceIsChosen) {
  collect(kJudged, 0);
  m_gain.see({segment(1, 500)}, 99);
  EXPECT_TRUE(m_gain.rests());
  m_gain.see({segment(1, 500), segment(2, 500)}, 100);
  EXPECT_FALSE(m_gain.rests());
  EXPECT_TRUE(m_gain.passes_over(segment(1, 500), kSegmentBytes));
  EXPECT_TRUE(m_gain.passes_over(segment(2, 500 - kSegmentBytes / 16 + 1), kSegmentBytes));
  EXPECT_FALSE(m_gain.passes_over(segment(2, 500 - kSegmentBytes / 16), kSegmentBytes));
  EXPECT_FALSE(m_gain.passes_over(segment(3, 500), kSegmentBytes));  // is new
}

TEST_F(GcGainTest, WhatIsStillBeingFilledCountsWithWhatItGets) {
  collect(kJudged, 0);
  m_gain.see({segment(1, 100)}, 100);
  m_gain.see({segment(1, 700)}, 110);
  EXPECT_FALSE(m_gain.passes_over(segment(1, 500), kSegmentBytes));
  m_gain.see({}, 120);
  EXPECT_FALSE(m_gain.passes_over(segment(1, 700), kSegmentBytes));  // it is gone: that is another one
}

}  // namespace
}  // namespace vtkv
