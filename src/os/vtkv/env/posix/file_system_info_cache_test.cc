// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecond_us = 1000 * 1000;

TEST(FileSystemInfoCache, TellsWhatTheHostTells) {
  const std::string path = std::filesystem::current_path();
  FileSystemInfo expected;
  ASSERT_TRUE(read_file_system_info(path, &expected).ok());
  FileSystemInfoCache cache;
  for (int i = 0; i < 2; ++i) {
    FileSystemInfo info;
    info.mount_point = "of another call";
    ASSERT_TRUE(cache.read(path, 5, &info).ok());
    EXPECT_EQ(info.kind, expected.kind);
    EXPECT_EQ(info.total_bytes, expected.total_bytes);
    EXPECT_GT(info.available_bytes, 0u);
    EXPECT_EQ(info.read_only, expected.read_only);
    EXPECT_EQ(info.single_flush, expected.single_flush);
    EXPECT_EQ(info.rotational, expected.rotational);
    EXPECT_EQ(info.device, expected.device);
    EXPECT_EQ(info.mount_point, expected.mount_point);
  }
}

// A store that is full for one size of slots asks at each write.
TEST(FileSystemInfoCache, LooksForMountAndDeviceOnceASecond) {
  const std::string path = std::filesystem::current_path();
  FileSystemInfoCache cache;
  FileSystemInfo info;
  for (uint64_t now_us = 5; now_us < 5 + kSecond_us; now_us += kSecond_us / 100) {
    ASSERT_TRUE(cache.read(path, now_us, &info).ok());
  }
  EXPECT_EQ(cache.descriptions(), 1u);
  ASSERT_TRUE(cache.read(path, 5 + kSecond_us, &info).ok());
  EXPECT_EQ(cache.descriptions(), 2u);
}

TEST(FileSystemInfoCache, AnotherPathIsAnotherFileSystem) {
  FileSystemInfoCache cache;
  FileSystemInfo here, there;
  ASSERT_TRUE(cache.read(std::filesystem::current_path(), 5, &here).ok());
  ASSERT_TRUE(cache.read("/proc", 5, &there).ok());
  EXPECT_EQ(there.mount_point, "/proc");
  EXPECT_NE(here.mount_point, there.mount_point);
  EXPECT_FALSE(cache.read("/no/such/path", 5, &there).ok());
  EXPECT_EQ(cache.descriptions(), 2u);
}

// By chown or chmod, while files below it are open.
class TakenAwayTest : public testing::Test {
 protected:
  TakenAwayTest() {
    EXPECT_NE(::mkdtemp(m_folder.data()), nullptr);
    fs::permissions(m_folder, fs::perms(0755));
    fs::create_directory(below());
    EXPECT_TRUE(m_locks.add(::open((m_folder + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)));
  }
  ~TakenAwayTest() override {
    fs::permissions(m_folder, fs::perms(0755));
    fs::remove_all(m_folder);
  }
  std::string below() const { return m_folder + "/cubes"; }
  // Root may go everywhere: it looks as somebody else.
  Status read_when_taken_away(FileSystemInfoCache* cache, FileSystemInfo* info) const {
    constexpr uid_t kNobody = 65534;
    const uid_t self = ::geteuid();
    fs::permissions(m_folder, fs::perms::none);
    EXPECT_EQ(::seteuid(self == 0 ? kNobody : self), 0);
    const Status status = cache->read(below(), 5 + kSecond_us, info);
    EXPECT_EQ(::seteuid(self), 0);
    return status;
  }

  std::string m_folder = "/tmp/taken_away_test.XXXXXX";
  HeldLocks m_locks;
};

// A store below it that found no space would report itself full.
TEST_F(TakenAwayTest, TheSpaceIsToldByALockFile) {
  FileSystemInfoCache cache(&m_locks);
  FileSystemInfo before, after;
  ASSERT_TRUE(cache.read(below(), 5, &before).ok());
  const Status status = read_when_taken_away(&cache, &after);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(after.total_bytes, before.total_bytes);
  EXPECT_GT(after.available_bytes, 0u);
  EXPECT_EQ(after.kind, before.kind);
  EXPECT_EQ(after.mount_point, before.mount_point);
  EXPECT_EQ(after.device, before.device);
}

TEST_F(TakenAwayTest, OfWhatNobodyAskedBeforeItIsAnError) {
  FileSystemInfoCache cache(&m_locks);
  FileSystemInfo info;
  EXPECT_EQ(read_when_taken_away(&cache, &info).error_number(), EACCES);
}

TEST_F(TakenAwayTest, ALockOfAnotherFileSystemTellsNothing) {
  HeldLocks elsewhere;
  ASSERT_TRUE(elsewhere.add(::open("/proc/self/status", O_RDONLY | O_CLOEXEC)));
  FileSystemInfoCache cache(&elsewhere);
  FileSystemInfo info;
  ASSERT_TRUE(cache.read(below(), 5, &info).ok());
  EXPECT_EQ(read_when_taken_away(&cache, &info).error_number(), EACCES);
}

}  // namespace
}  // namespace vtkv
