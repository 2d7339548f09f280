// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "vtkv/env/posix/file_system_info.h"

namespace vtkv {
namespace {

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

}  // namespace
}  // namespace vtkv
