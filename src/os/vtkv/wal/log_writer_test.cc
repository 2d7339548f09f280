// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/log_writer.h"

#include <gtest/gtest.h>

#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() : m_pool(&m_env, "/log", {.log_segment_bytes = 64 << 10, .initial_log_segments = 3}, m_uuid) {
    EXPECT_TRUE(m_pool.create().ok());
    m_writer.start_after({0, 1, 1, kLogBlockBytes, 0});
  }
  uint64_t segment_of_record(uint16_t flags) {
    EXPECT_TRUE(m_writer.form({{1, "batch"}}, 0, flags, &m_record).ok());
    return m_record.position.segment_id;
  }

  SimEnv m_env{{.record = false}};
  Uuid m_uuid{1, 2, 3};
  SegmentPool m_pool;
  LogWriter m_writer{&m_env, &m_pool, m_uuid};
  FormedRecord m_record;
};

// A program that knows no fragments refuses a segment of version 3, but not one that it began itself.
TEST_F(LogWriterTest, FragmentsDoNotGoToASegmentThatAnOlderProgramBegan) {
  m_pool.find(1)->header_version = kSegmentVersion - 1;
  EXPECT_EQ(segment_of_record(0), 1u);
  const uint64_t fresh = segment_of_record(kContinues);
  EXPECT_NE(fresh, 1u);
  EXPECT_EQ(m_record.write_offset, 0u);  // with the segment's header
  EXPECT_EQ(segment_of_record(kContinues), fresh);
  EXPECT_EQ(segment_of_record(0), fresh);
  EXPECT_EQ(segment_of_record(kContinues), fresh);
}

// What lies before the first record of an open may have holes, in a copy.
TEST_F(LogWriterTest, WhatIsWrittenWithoutAGapCounts) {
  LogSegment* const segment = m_pool.find(1);
  const uint64_t begin = segment->written_bytes;
  (void)segment_of_record(0);
  EXPECT_EQ(segment->written_bytes, m_record.position.end_offset);
  segment->written_bytes = begin;
  (void)segment_of_record(0);
  EXPECT_EQ(segment->written_bytes, begin);
}

}  // namespace
}  // namespace vtkv
