// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/commit/group_pacer.h"

#include <gtest/gtest.h>

namespace vtkv {
namespace {

constexpr uint64_t kFlushUs = 400;

// A flush that ends at `end_us`, with so many submissions in it and so many queued behind.
void flush(GroupPacer* pacer, uint64_t end_us, size_t ended, size_t waiting, uint64_t took_us = kFlushUs) {
  pacer->flush_began(end_us - took_us);
  pacer->flush_ended(ended, waiting, end_us);
}

TEST(GroupPacerTest, OneWriterAloneNeverWaits) {
  GroupPacer pacer;
  EXPECT_EQ(pacer.hold(1, 10).count(), 0);
  flush(&pacer, 1000, 1, 0);
  EXPECT_EQ(pacer.hold(1, 1000).count(), 0);
}

TEST(GroupPacerTest, WaitsForThoseThatTheFlushWoke) {
  GroupPacer pacer;
  flush(&pacer, 1000, 10, 6);
  EXPECT_GT(pacer.hold(6, 1000).count(), 0);
  EXPECT_GT(pacer.hold(15, 1010).count(), 0);
  EXPECT_EQ(pacer.hold(16, 1010).count(), 0);
}

TEST(GroupPacerTest, WaitsNoLongerThanAQuarterOfAFlush) {
  GroupPacer pacer;
  flush(&pacer, 1000, 10, 6);
  EXPECT_EQ(pacer.hold(6, 1000).count(), kFlushUs / 4);
  EXPECT_EQ(pacer.hold(6, 1000 + kFlushUs / 4).count(), 0);
}

TEST(GroupPacerTest, ExpectsThoseOfTheLastFlushOnly) {
  GroupPacer pacer;
  flush(&pacer, 1000, 32, 0);
  flush(&pacer, 2000, 3, 0);
  EXPECT_EQ(pacer.hold(3, 2000).count(), 0);
}

TEST(GroupPacerTest, OneSlowFlushHardlyProlongsTheWait) {
  GroupPacer pacer;
  flush(&pacer, 100000, 10, 6);
  flush(&pacer, 300000, 10, 6, 50 * kFlushUs);
  EXPECT_LE(pacer.hold(6, 300000).count(), kFlushUs / 3);
}

}  // namespace
}  // namespace vtkv
