// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/flush_obstacle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace vtkv {
namespace {

namespace fs = std::filesystem;

// In a folder that other users may look into, wherever the tests run: a checkout may lie in a home of mode 0700.
class FlushObstacleTest : public testing::Test {
 protected:
  explicit FlushObstacleTest(const fs::path& parent = "/tmp") : m_folder(parent / "flush_obstacle_test.XXXXXX") {
    EXPECT_NE(::mkdtemp(m_folder.data()), nullptr);
    fs::permissions(m_folder, fs::perms(0755));
    fs::create_directories(m_folder + "/cubes/0");
    std::ofstream(m_folder + "/cubes/0/file") << "some bytes";
  }
  ~FlushObstacleTest() override { fs::remove_all(m_folder); }

  std::string m_folder;
  std::string m_obstacle;
};

TEST_F(FlushObstacleTest, PlainFilesAreNone) {
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_EQ(m_obstacle, "");
}

TEST_F(FlushObstacleTest, FileOfAnotherFileSystemIsOne) {
  fs::create_symlink("/proc/self/status", m_folder + "/cubes/0/elsewhere");
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_EQ(m_obstacle, m_folder + "/cubes/0/elsewhere lies on another file system");
}

// Whose file system check makes it, and may read it.
TEST_F(FlushObstacleTest, WhatLiesInLostAndFoundIsNobodysBusiness) {
  fs::create_directory(m_folder + "/lost+found");
  fs::create_symlink("/proc/self/status", m_folder + "/lost+found/elsewhere");
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_EQ(m_obstacle, "");
  fs::create_directory(m_folder + "/cubes/lost+found");
  fs::create_symlink("/proc/self/status", m_folder + "/cubes/lost+found/elsewhere");
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_NE(m_obstacle, "");
}

// As root may leave it beside the store of an OSD that runs as ceph.
TEST_F(FlushObstacleTest, WhatMayNotBeReadIsNobodysBusiness) {
  constexpr uid_t kNobody = 65534;
  std::ofstream(m_folder + "/keyring.bak") << "a key";
  fs::create_directories(m_folder + "/cores/old");
  fs::permissions(m_folder + "/keyring.bak", fs::perms::none);
  fs::permissions(m_folder + "/cores", fs::perms::none);
  const uid_t self = ::geteuid();
  ASSERT_EQ(::seteuid(self == 0 ? kNobody : self), 0);  // root may read everything
  const Status status = find_flush_obstacle(m_folder, &m_obstacle);
  ASSERT_EQ(::seteuid(self), 0);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(m_obstacle, "");
  fs::permissions(m_folder + "/cores", fs::perms::owner_all);  // or only root could remove it
}

// A folder on a file system with reflinks, where the environment names one: qa/standalone/real-fs.py makes it.
std::vector<std::string> folders_with_reflinks() {
  const char* const folder = std::getenv("VTKV_REFLINK_FOLDER");
  return folder == nullptr ? std::vector<std::string>() : std::vector<std::string>{folder};
}

class ReflinkTest : public FlushObstacleTest, public testing::WithParamInterface<std::string> {
 protected:
  ReflinkTest() : FlushObstacleTest(GetParam()) {}
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReflinkTest);
INSTANTIATE_TEST_SUITE_P(Folder, ReflinkTest, testing::ValuesIn(folders_with_reflinks()));

TEST_P(ReflinkTest, FileWithACopyIsAnObstacle) {
  const std::string file = m_folder + "/cubes/0/file";
  const int from = ::open(file.c_str(), O_RDONLY);
  const int to = ::open((m_folder + "/copy").c_str(), O_CREAT | O_RDWR, 0600);
  ::fsync(from);
  ASSERT_EQ(::ioctl(to, FICLONE, from), 0) << "there are no reflinks in " << GetParam();
  ::close(to);
  ::close(from);
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_NE(m_obstacle.find("shares blocks with another file"), std::string::npos);
  fs::resize_file(m_folder + "/copy", 0);  // gives its share back at once, as removing it may not
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_EQ(m_obstacle, "");
}

TEST_F(FlushObstacleTest, DirectoryThatIsNotThereIsTold) {
  EXPECT_EQ(find_flush_obstacle(m_folder + "/nowhere", &m_obstacle).error_number(), ENOENT);
}

}  // namespace
}  // namespace vtkv
