// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/wal/segment_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "vtkv/env/aligned_buffer.h"
#include "vtkv/testing/sim_env.h"
#include "vtkv/testing/sim_fault.h"

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
  // A live one as large as three others; no spare is left but the last one, and the host has no space.
  LogSegment* fill_host_behind_large_one() {
    LogSegment* large = nullptr;
    EXPECT_TRUE(m_pool->take(3 * kSegmentBytes, false, &large).ok());
    while (m_pool->room_bytes() > 0) {
      (void)take();
    }
    m_env.set_capacity(m_env.allocated_bytes());
    return large;
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

TEST_F(SegmentPoolTest, AsksForRoomUntilASegmentFits) {
  int asked = 0;
  SegmentPool pool(&m_env, "/log", m_geometry, Uuid{}, 0, [&] {
    m_env.set_capacity(m_env.allocated_bytes() + ++asked * kSegmentBytes / 2);
    return asked <= 2;
  });
  ASSERT_TRUE(pool.load().ok());
  m_env.set_capacity(m_env.allocated_bytes());
  LogSegment* segment = nullptr;
  while (asked == 0) {
    ASSERT_TRUE(pool.take(0, false, &segment).ok());
  }
  EXPECT_EQ(asked, 2);  // the first half was not enough
  m_env.set_capacity(m_env.allocated_bytes());
  EXPECT_TRUE(pool.take(0, false, &segment).is_no_space());
  EXPECT_EQ(asked, 3);
}

// Meanwhile a flush may have set one free, or what the host refused went to a spare.
TEST_F(SegmentPoolTest, LooksForASpareAgainWhereTheHostIsFull) {
  SegmentPool* made = nullptr;
  SegmentPool pool(&m_env, "/log", m_geometry, Uuid{}, 0, [&made] {
    made->release_before(UINT64_MAX, {});
    return false;
  });
  made = &pool;
  ASSERT_TRUE(pool.load().ok());
  m_env.set_capacity(m_env.allocated_bytes());
  LogSegment* segment = nullptr;
  for (uint32_t i = 0; i < 3 * m_geometry.initial_log_segments; ++i) {
    const Status status = pool.take(0, false, &segment);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
}

// One that was made for a batch of its size is used before the host is asked for more; the last one is a recovery's.
TEST_F(SegmentPoolTest, AFullHostLivesOnALargerSpare) {
  LogSegment* const large = fill_host_behind_large_one();
  m_pool->release_before(large->epoch + 1, {});  // with those taken before it
  LogSegment* segment = nullptr;
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    status = m_pool->take(0, false, &segment);
  }
  EXPECT_TRUE(status.is_no_space()) << status.to_string();
  EXPECT_EQ(m_pool->file_bytes() - m_pool->used_bytes(), large->bytes);
  EXPECT_TRUE(m_pool->take(3 * kSegmentBytes, false, &segment).is_no_space());
  bool did = true;
  EXPECT_TRUE(m_pool->work_ahead(&did).is_no_space()) << "it would be given up before there is another one";
  ASSERT_TRUE(m_pool->take(0, true, &segment).ok());
  EXPECT_EQ(segment, large);
}

// And given up for one of the usual size, where another one is left.
TEST_F(SegmentPoolTest, AFullHostGetsTheSpaceOfALargerSpare) {
  LogSegment* const large = fill_host_behind_large_one();
  EXPECT_EQ(m_pool->room_bytes(), 0u);
  const std::string path = large->path;
  std::set<uint64_t> listed;  // all but that one stay as they are
  for (const LogSegment* segment : m_pool->segments()) {
    if (segment != large) {
      listed.insert(segment->epoch);
    }
  }
  m_pool->release_before(large->epoch + 1, listed);
  work_ahead();
  EXPECT_FALSE(m_env.exists(path));
  EXPECT_GT(m_pool->room_bytes(), 0u);
}

TEST_F(SegmentPoolTest, AFileThatCannotBeRemovedIsTriedAgain) {
  LogSegment* large = nullptr;
  ASSERT_TRUE(m_pool->take(3 * kSegmentBytes, false, &large).ok());
  const std::string path = large->path;
  m_pool->release_before(large->epoch + 1, {});
  m_env.fail_nth(SimCall::remove, 1, Status::from_errno(EIO, "injected"), false);
  bool did = true;
  Status status;
  while (did && status.ok()) {
    status = m_pool->work_ahead(&did);
  }
  EXPECT_EQ(status.code(), Status::Code::io_error);
  EXPECT_TRUE(m_env.exists(path));
  work_ahead();
  EXPECT_FALSE(m_env.exists(path));
}

// Its blocks would only be given to the next one.
TEST_F(SegmentPoolTest, ABadFileStaysAndIsNotTaken) {
  LogSegment* const bad = take_unprimed();
  LogSegment* const next = take_unprimed();
  m_pool->release_before(next->epoch, {});
  wait_for_flushes(4);
  m_env.set_bad(SimBad::writes, bad->path, kLogBlockBytes, kSegmentBytes);
  bool did = true;
  Status status;
  while (did && status.ok()) {
    status = m_pool->work_ahead(&did);
  }
  EXPECT_EQ(status.code(), Status::Code::io_error);
  work_ahead();  // others are primed
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(take(), bad);
    work_ahead();
  }
  EXPECT_TRUE(m_env.exists(bad->path));
}

TEST_F(SegmentPoolTest, HeaderTellsTheNextOpen) {
  for (const bool primed : {false, true}) {
    LogSegment* const segment = take_unprimed();
    segment->primed.store(primed);
    if (primed) {
      ASSERT_TRUE(segment->file->write_zeros(0, kSegmentBytes).ok());
    }
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

// A copy that leaves out zeros, and the mount after one that gave such a hole space.
TEST_F(SegmentPoolTest, WhatTheHostDoesNotCallWrittenIsNotPrimed) {
  LogSegment* const segment = take_unprimed();
  ASSERT_TRUE(segment->file->write_zeros(0, kSegmentBytes).ok());
  segment->primed.store(true);
  AlignedBuffer buffer(kLogBlockBytes);
  buffer.append(m_pool->header_block(*segment));
  ASSERT_TRUE(segment->file->write(0, buffer.data(), buffer.size()).ok());
  ASSERT_TRUE(segment->file->sync().ok());
  const uint64_t id = segment->id;
  const uint64_t hole = kSegmentBytes / 2;
  for (const bool reserved : {false, true}) {
    m_pool = new_pool();
    ASSERT_TRUE(m_pool->load().ok());
    EXPECT_EQ(m_pool->find(id)->primed.load(), !reserved);
    File& file = *m_pool->find(id)->file;
    ASSERT_TRUE(file.punch_hole(hole, kLogBlockBytes).ok());
    if (reserved) {
      ASSERT_TRUE(file.allocate(hole, kLogBlockBytes).ok());
    }
    m_pool = new_pool();
    ASSERT_TRUE(m_pool->load().ok());
    EXPECT_FALSE(m_pool->find(id)->primed.load());
    EXPECT_EQ(m_pool->find(id)->written_bytes, hole);
  }
}

// Opening a log whose files are not as they were left.
class SegmentLoadTest : public SegmentPoolTest {
 protected:
  SegmentLoadTest() { m_path = m_pool->find(2)->path; }

  // The spare's first block is this, and its size `bytes`.
  void set_first_block(const std::string& block, uint64_t bytes = kSegmentBytes) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env.open_file(m_path, {}, &file).ok());
    ASSERT_TRUE(file->truncate(bytes).ok());
    AlignedBuffer buffer(kLogBlockBytes);
    std::memset(buffer.data(), 0, kLogBlockBytes);
    std::memcpy(buffer.data(), block.data(), block.size());
    if (bytes >= kLogBlockBytes) {
      ASSERT_TRUE(file->write(0, buffer.data(), kLogBlockBytes).ok());
    }
  }
  void set_header(segment_header_t header, uint64_t bytes = kSegmentBytes) {
    seal(&header);
    set_first_block({reinterpret_cast<const char*>(&header), sizeof(header)}, bytes);
  }
  segment_header_t good_header() {
    segment_header_t header;
    header.segment_id = 2;
    header.segment_bytes = kSegmentBytes;
    return header;
  }
  void put_record_into_second_block() {
    record_header_t header;
    header.first_sequence = header.sequence_count = 1;
    seal(&header, "");
    AlignedBuffer buffer(kLogBlockBytes);
    std::memset(buffer.data(), 0, kLogBlockBytes);
    std::memcpy(buffer.data(), &header, sizeof(header));
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env.open_file(m_path, {}, &file).ok());
    ASSERT_TRUE(file->write(kLogBlockBytes, buffer.data(), kLogBlockBytes).ok());
  }
  Status load() {
    m_pool = new_pool();
    return m_pool->load();
  }
  // Its message names the file.
  void expect_refused(Status::Code code, std::string_view why) {
    const Status status = load();
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_NE(status.message().find(m_path), std::string_view::npos) << status.to_string();
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.to_string();
  }

  std::string m_path;
};

TEST_F(SegmentLoadTest, OnlyFilesWithASegmentsNameAreOpened) {
  const uint32_t segments = m_pool->segment_count();
  const std::string names[] = {"1.log",     "123456789012345678901.log", "000009.old", "00-009.log", "00000a.log",
                               "000000.log"};
  for (const std::string& name : names) {
    std::unique_ptr<File> file;
    ASSERT_TRUE(m_env.open_file("/log/" + name, {.create = true}, &file).ok());
  }
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(m_pool->segment_count(), segments);
  ASSERT_TRUE(m_pool->remove_half_made().ok());
  for (const std::string& name : names) {
    EXPECT_TRUE(m_env.exists("/log/" + name)) << name;
  }
}

TEST_F(SegmentLoadTest, FileWithoutAHeaderIsLeftOutAndRemoved) {
  for (const uint64_t bytes : {uint64_t{100}, kSegmentBytes}) {
    set_first_block("", bytes);
    ASSERT_TRUE(load().ok());
    EXPECT_EQ(m_pool->find(2), nullptr);
    EXPECT_TRUE(m_env.exists(m_path));
  }
  ASSERT_TRUE(m_pool->remove_half_made().ok());
  EXPECT_FALSE(m_env.exists(m_path));
}

TEST_F(SegmentLoadTest, HeaderThatWentMissingIsToldFromOneThatNeverWas) {
  set_first_block("");
  put_record_into_second_block();
  expect_refused(Status::Code::corruption, "the segment header is gone but records follow");
}

TEST_F(SegmentLoadTest, SegmentOfAnotherDatabaseIsRefused) {
  segment_header_t header = good_header();
  header.uuid[3] = 1;
  set_header(header);
  expect_refused(Status::Code::corruption, "belongs to another database");
}

TEST_F(SegmentLoadTest, SegmentOfANewerVersionIsRefused) {
  segment_header_t header = good_header();
  header.version = 9;
  set_header(header);
  expect_refused(Status::Code::unsupported, "format 9");
}

TEST_F(SegmentLoadTest, HeaderUnderAnotherNameOrWithABadChecksumIsDamaged) {
  segment_header_t header = good_header();
  header.segment_id = 3;
  set_header(header);
  expect_refused(Status::Code::corruption, "the segment header is damaged");
  set_first_block("nonsense");
  expect_refused(Status::Code::corruption, "the segment header is damaged");
}

TEST_F(SegmentLoadTest, SizeMustBeTheHeadersAndWholeBlocks) {
  set_header(good_header(), kSegmentBytes - kLogBlockBytes);
  expect_refused(Status::Code::corruption, "its header says 65536");
  for (const uint64_t bytes : {uint64_t{kLogBlockBytes}, kSegmentBytes - 100}) {
    segment_header_t header = good_header();
    header.segment_bytes = bytes;
    set_header(header, bytes);
    expect_refused(Status::Code::corruption, "is " + std::to_string(bytes) + " bytes long");
  }
}

// Every call that loading makes, one after the other.
TEST_F(SegmentLoadTest, ErrorsOfTheHostAreTold) {
  set_first_block("");  // looked at block by block
  for (const SimCall call : {SimCall::open, SimCall::read, SimCall::size, SimCall::list_directory}) {
    uint64_t struck = 0;
    for (bool reached = true; reached; ++struck) {
      NthFailure failure(&m_env, call, struck + 1, true);  // one read decides nothing
      const Status status = load();
      reached = failure.end();
      EXPECT_EQ(status.ok(), !reached) << status.to_string();
    }
    EXPECT_GT(struck, 1u);
  }
  ASSERT_TRUE(load().ok());
  m_env.fail_nth(SimCall::remove, 1, Status::from_errno(EIO, "injected"), false);
  EXPECT_EQ(m_pool->remove_half_made().code(), Status::Code::io_error);
}

TEST_F(SegmentPoolTest, FailedSyncOfOneSegmentFailsTheSyncOfAll) {
  for (uint64_t n = 1; n <= m_pool->segment_count(); ++n) {
    m_env.fail_nth(SimCall::sync, n, Status::from_errno(EIO, "injected"), false);
    EXPECT_EQ(m_pool->sync_all().code(), Status::Code::io_error) << n;
    m_env.clear_faults();
  }
  EXPECT_TRUE(m_pool->sync_all().ok());
}

TEST_F(SegmentPoolTest, ListedSegmentsAreNotReleased) {
  LogSegment* const first = take();
  LogSegment* const second = take();
  LogSegment* const third = take();
  m_pool->release_before(third->epoch, {first->epoch});
  const LogFiles files = m_pool->files();
  EXPECT_EQ(files.of_epoch(first->epoch), first->bytes);
  EXPECT_EQ(files.of_epoch(second->epoch), 0u);  // it is spare
  EXPECT_EQ(files.of_epoch(third->epoch), third->bytes);
}

}  // namespace
}  // namespace vtkv
