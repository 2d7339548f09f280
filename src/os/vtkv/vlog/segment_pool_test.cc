#include "vtkv/vlog/segment_pool.h"

#include <gtest/gtest.h>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

constexpr uint64_t kSegmentBytes = 64 << 10;
constexpr uint64_t kPrimedBytesPerCommit = 16 << 10;  // four waited-for flushes to a segment

class SegmentPoolTest : public testing::Test {
 protected:
  SegmentPoolTest() {
    m_geometry.log_segment_bytes = kSegmentBytes;
    m_geometry.initial_log_segments = 2;
    m_pool = new_pool();
    EXPECT_TRUE(m_pool->create().ok());
    work_ahead();
  }
  std::unique_ptr<SegmentPool> new_pool() {
    return std::make_unique<SegmentPool>(&m_env, "/log", m_geometry, Uuid{}, kPrimedBytesPerCommit);
  }
  void work_ahead() {
    for (bool did = true; did;) {
      ASSERT_TRUE(m_pool->work_ahead(&did).ok());
    }
  }
  LogSegment* take() {
    LogSegment* segment = nullptr;
    EXPECT_TRUE(m_pool->take(0, false, &segment).ok());
    return segment;
  }
  // Those made with the database are primed.
  LogSegment* take_unprimed() {
    LogSegment* segment = take();
    while (segment->primed.load()) {
      work_ahead();
      segment = take();
    }
    work_ahead();
    return segment;
  }
  void wait_for_flushes(int count) {
    for (int i = 0; i < count; ++i) {
      m_pool->note_waited_flush();
    }
  }

  SimEnv m_env{{}};
  Geometry m_geometry;
  std::unique_ptr<SegmentPool> m_pool;
};

TEST_F(SegmentPoolTest, NothingIsWrittenTwiceWhenNobodyWaits) {
  const uint64_t primed = m_pool->primed_bytes();
  EXPECT_EQ(primed, 2 * kSegmentBytes);
  for (int i = 0; i < 6; ++i) {
    (void)take_unprimed();
  }
  EXPECT_EQ(m_pool->primed_bytes(), primed);
  EXPECT_GE(m_pool->unprimed_count(), 6u);
}

TEST_F(SegmentPoolTest, ManyWaitedFlushesPrimeTheNextSegment) {
  (void)take_unprimed();
  wait_for_flushes(3);
  work_ahead();
  EXPECT_FALSE(m_pool->primed_awaits());
  wait_for_flushes(1);
  work_ahead();
  EXPECT_TRUE(m_pool->primed_awaits());
  EXPECT_TRUE(take()->primed.load());
}

TEST_F(SegmentPoolTest, FilledSegmentIsPrimedByItsUnusedEnd) {
  LogSegment* filled = take_unprimed();
  filled->written_bytes = kSegmentBytes - kLogBlockBytes;
  LogSegment* const next = take_unprimed();
  m_pool->release_before(next->epoch, {});
  wait_for_flushes(4);
  const uint64_t before = m_pool->primed_bytes();
  bool did = true;
  while (did && !filled->primed.load()) {
    ASSERT_TRUE(m_pool->work_ahead(&did).ok());
  }
  ASSERT_TRUE(filled->primed.load());
  EXPECT_EQ(m_pool->primed_bytes() - before, kLogBlockBytes);
}

TEST_F(SegmentPoolTest, HeaderTellsTheNextOpen) {
  for (const bool primed : {false, true}) {
    LogSegment* const segment = take_unprimed();
    segment->primed.store(primed);
    const std::string block = m_pool->header_block(*segment);
    AlignedBuffer buffer(block.size());
    buffer.append(block);
    ASSERT_TRUE(segment->file->write(0, buffer.data(), buffer.size()).ok());
    const uint64_t id = segment->id;
    m_pool = new_pool();
    ASSERT_TRUE(m_pool->load().ok());
    EXPECT_EQ(m_pool->find(id)->primed.load(), primed);
  }
}

}  // namespace
}  // namespace vtkv
