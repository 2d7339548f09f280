// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/sync_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace vtkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// As Linux 6.18 writes them.
constexpr const char* kExt4Options =
    "rw\nbsddf\nblock_validity\ndelalloc\nnojournal_checksum\nbarrier\nuser_xattr\nacl\nnoquota\nerrors=continue\n"
    "commit=5\ndata=ordered\n";

SyncFacts ext4() { return {true, "ext4", "/srv/osd", std::string("rw,noatime\n") + kExt4Options, "812", "sdb1"}; }
SyncFacts xfs() { return {false, "xfs", "/srv/osd", "rw,attr2,inode64,noquota", "", ""}; }

TEST(SyncLoss, WhatWasProvenHasNone) {
  EXPECT_EQ(describe_sync_loss(ext4()), "");
  EXPECT_EQ(describe_sync_loss(xfs()), "");
  EXPECT_EQ(describe_sync_loss({}), "");
}

TEST(SyncLoss, AnExt4NeedsAJournal) {
  SyncFacts facts = ext4();
  facts.journal_task = "<none>";
  EXPECT_THAT(describe_sync_loss(facts), AllOf(HasSubstr("without a journal"), HasSubstr("has_journal /dev/sdb1'")));
  facts.journal_task = "0";  // of another namespace of processes, which has no number here
  EXPECT_EQ(describe_sync_loss(facts), "");
  facts.journal_task = "";  // a kernel before 5.1, or a container without /sys
  EXPECT_EQ(describe_sync_loss(facts), "");
}

TEST(SyncLoss, TheMagicNumberOfExt4IsNotEnough) {
  for (const char* const type : {"ext2", "ext3"}) {
    SyncFacts facts = ext4();
    facts.type = type;
    EXPECT_THAT(describe_sync_loss(facts), AllOf(HasSubstr(std::string("an ") + type), HasSubstr("make an ext4")));
  }
}

TEST(SyncLoss, BarriersMustBeOn) {
  for (const char* const word : {"nobarrier", "barrier=0"}) {
    for (SyncFacts facts : {ext4(), xfs()}) {
      facts.options = std::string("rw,") + word + ",noatime";
      EXPECT_THAT(describe_sync_loss(facts), HasSubstr("mount -o remount,barrier /srv/osd'")) << word;
    }
  }
  SyncFacts only_in_proc = ext4();
  only_in_proc.options = "rw,noatime\nrw\nnobarrier\ncommit=5\n";
  EXPECT_THAT(describe_sync_loss(only_in_proc), HasSubstr("nobarrier"));
  SyncFacts other = xfs();
  other.options = "rw,nobarriers,barrier=1";
  EXPECT_EQ(describe_sync_loss(other), "");
}

TEST(SyncLoss, ACacheThatIsFlushedIsFine) {
  EXPECT_FALSE(is_unflushed({"write back", "1", "write back", false}));
  EXPECT_FALSE(is_unflushed({"write back", "0", "", true}));
}

TEST(SyncLoss, ADiskWithoutAVolatileCacheNeedsNoFlush) {
  EXPECT_FALSE(is_unflushed({"write through", "0", "write through", false}));
  EXPECT_FALSE(is_unflushed({"write through", "0", "", false}));  // nobody tells
  EXPECT_FALSE(is_unflushed({}));
}

TEST(SyncLoss, ACacheThatWasHiddenByHandIsFound) {
  EXPECT_TRUE(is_unflushed({"write through", "1", "", false}));            // NVMe
  EXPECT_TRUE(is_unflushed({"write through", "0", "write back", false}));  // SCSI, virtio
  EXPECT_TRUE(is_unflushed({"write through", "0", "", true}));
}

TEST(SyncLoss, OfWhatIsNotThereNothingIsTold) {
  EXPECT_EQ(find_sync_loss("/nowhere/at/all"), "");
  EXPECT_EQ(find_unflushed_cache("/nowhere/at/all"), "");
  EXPECT_EQ(find_sync_loss("/proc"), "");
  EXPECT_EQ(find_unflushed_cache("/proc"), "");
}

// qa/standalone/real-fs.py makes the folders, and says what is to be found there.
struct Folder {
  std::string path;
  std::string expected;
};

std::vector<Folder> folders(const char* variable) {
  const char* const folder = std::getenv(variable);
  const char* const expected = std::getenv("VTKV_EXPECTED_WORDS");
  return folder == nullptr ? std::vector<Folder>() : std::vector<Folder>{{folder, expected == nullptr ? "" : expected}};
}

void check(const std::string& found, const std::string& expected) {
  if (expected.empty()) {
    EXPECT_EQ(found, "");
  } else {
    EXPECT_THAT(found, HasSubstr(expected));
  }
}

class SyncLossHostTest : public testing::TestWithParam<Folder> {};
class UnflushedCacheHostTest : public testing::TestWithParam<Folder> {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SyncLossHostTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnflushedCacheHostTest);
INSTANTIATE_TEST_SUITE_P(Folder, SyncLossHostTest, testing::ValuesIn(folders("VTKV_SYNC_LOSS_FOLDER")));
INSTANTIATE_TEST_SUITE_P(Folder, UnflushedCacheHostTest, testing::ValuesIn(folders("VTKV_UNFLUSHED_FOLDER")));

TEST_P(SyncLossHostTest, IsWhatItIs) { check(find_sync_loss(GetParam().path), GetParam().expected); }

TEST_P(UnflushedCacheHostTest, IsWhatItIs) { check(find_unflushed_cache(GetParam().path), GetParam().expected); }

}  // namespace
}  // namespace vtkv
