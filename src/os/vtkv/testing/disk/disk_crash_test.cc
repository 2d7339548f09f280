// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/testing/disk/disk_crash.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>

namespace vtkv {
namespace {

class DiskCrashTest : public testing::Test {
 protected:
  uint64_t write(uint32_t block, const std::string& letters) {
    std::string data;
    for (const char letter : letters) {
      data += std::string(kDiskBlockBytes, letter);
    }
    return m_disk.begin_write(uint64_t{block} * kDiskBlockBytes, data.size(), data.data());
  }
  void write_whole(uint32_t block, const std::string& letters) { m_disk.complete(write(block, letters)); }
  void flush() { m_disk.complete(m_disk.begin_flush()); }

  // A letter for each block; '.' for zeros.
  std::string text(const DiskImage& image) const {
    std::string result;
    for (const uint32_t copy : image) {
      const char letter = m_disk.content(copy)[0];
      result += letter == 0 ? '.' : letter;
    }
    return result;
  }
  std::string durable() const { return text(DiskCrashes(m_disk.trace()).nothing_landed().image); }
  std::set<std::string> possible(uint64_t from = 0) const {
    DiskCrashes crashes(m_disk.trace(), from);
    std::set<std::string> result;
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
      result.insert(text(crashes.next(random).image));
    }
    return result;
  }

  RecordedDisk m_disk{4 * kDiskBlockBytes, 100};
};

TEST_F(DiskCrashTest, AFlushCoversWhatHadCompletedWhenItWasSubmitted) {
  write_whole(0, "a");
  const uint64_t late = write(1, "b");
  const uint64_t flush = m_disk.begin_flush();
  m_disk.complete(late);
  m_disk.complete(flush);
  EXPECT_EQ(durable(), "a...");
}

TEST_F(DiskCrashTest, AFlushThatHasNotCompletedCoversNothing) {
  write_whole(0, "a");
  m_disk.begin_flush();
  EXPECT_EQ(durable(), "....");
}

TEST_F(DiskCrashTest, WhatNoFlushCoversLandsInAnyCombination) {
  write_whole(0, "a");
  write_whole(1, "b");
  EXPECT_EQ(possible(), (std::set<std::string>{"....", "a...", ".b..", "ab.."}));
}

TEST_F(DiskCrashTest, AWriteIsTornBetweenBlocks) {
  write_whole(0, "abc");
  const std::set<std::string> states = possible();
  EXPECT_EQ(states.size(), 8u);
  EXPECT_TRUE(states.contains("a.c."));
}

TEST_F(DiskCrashTest, ADiscardReadsAsZerosOrAsBefore) {
  write_whole(0, "ab");
  flush();
  const uint64_t from = m_disk.time();
  m_disk.complete(m_disk.begin_zeros(0, kDiskBlockBytes));
  EXPECT_EQ(possible(from), (std::set<std::string>{"ab..", ".b.."}));
}

TEST_F(DiskCrashTest, ACrashKnowsTheMarksSetBeforeIt) {
  m_disk.mark(1);
  write_whole(0, "a");
  const uint64_t flush = m_disk.begin_flush();
  m_disk.mark(2);
  m_disk.complete(flush);
  m_disk.mark(3);
  std::set<std::vector<uint64_t>> seen;
  DiskCrashes crashes(m_disk.trace());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    seen.insert(crashes.next(random).marks);
  }
  EXPECT_EQ(seen, (std::set<std::vector<uint64_t>>{{1, 2}, {1, 2, 3}}));
}

TEST_F(DiskCrashTest, NoCrashIsEarlierThanAskedFor) {
  write_whole(0, "a");
  flush();
  const uint64_t from = m_disk.time();
  write_whole(1, "b");
  flush();
  EXPECT_EQ(possible(from), (std::set<std::string>{"a...", "ab.."}));
}

TEST_F(DiskCrashTest, AShownImageIsWhatTheNextCrashStartsFrom) {
  write_whole(0, "ab");
  const DiskImage image = m_disk.image();
  write_whole(0, "z");
  m_disk.show(image);
  EXPECT_EQ(durable(), "ab..");
  write_whole(2, "c");
  EXPECT_EQ(possible(), (std::set<std::string>{"ab..", "abc."}));
}

TEST_F(DiskCrashTest, TheDiskRefusesWhatIsNotInWholeBlocksOrLeavesIt) {
  const std::string data(kDiskBlockBytes, 'x');
  EXPECT_EQ(m_disk.begin_write(512, data.size(), data.data()), kDiskNever);
  EXPECT_EQ(m_disk.begin_write(4 * kDiskBlockBytes, data.size(), data.data()), kDiskNever);
  EXPECT_EQ(m_disk.begin_zeros(3 * kDiskBlockBytes, 2 * kDiskBlockBytes), kDiskNever);
  EXPECT_EQ(durable(), "....");
}

// It dies copying a block to where nothing may be written: while it holds the disk's mutex.
TEST_F(DiskCrashTest, ATesterThatDiesInACallLeavesTheDiskUsable) {
  void* const nowhere = ::mmap(nullptr, kDiskBlockBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nowhere, MAP_FAILED);
  EXPECT_DEATH((void)m_disk.read(0, kDiskBlockBytes, static_cast<char*>(nowhere)), "");
  ::alarm(30);
  write_whole(0, "a");
  ::alarm(0);
  EXPECT_EQ(text(m_disk.image()), "a...");
  ::munmap(nowhere, kDiskBlockBytes);
}

TEST_F(DiskCrashTest, RewoundCopiesAreUsedAgain) {
  const uint32_t position = m_disk.position();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(write(0, "abcd"), kDiskNever);
    m_disk.show(DiskImage(4));
    m_disk.rewind(position);
  }
}

}  // namespace
}  // namespace vtkv
