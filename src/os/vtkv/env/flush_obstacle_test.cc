#include "vtkv/env/flush_obstacle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace vtkv {
namespace {

namespace fs = std::filesystem;

class FlushObstacleTest : public testing::Test {
 protected:
  FlushObstacleTest() {
    EXPECT_NE(::mkdtemp(m_folder.data()), nullptr);
    fs::create_directories(m_folder + "/cubes/0");
    std::ofstream(m_folder + "/cubes/0/file") << "some bytes";
  }
  ~FlushObstacleTest() override { fs::remove_all(m_folder); }

  std::string m_folder = fs::current_path() / "flush_obstacle_test.XXXXXX";
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

TEST_F(FlushObstacleTest, FileWithACopyByReflinkIsOne) {
  const std::string file = m_folder + "/cubes/0/file";
  const int from = ::open(file.c_str(), O_RDONLY);
  const int to = ::open((m_folder + "/copy").c_str(), O_CREAT | O_RDWR, 0600);
  ::fsync(from);
  const bool can = ::ioctl(to, FICLONE, from) == 0;
  ::close(to);
  ::close(from);
  if (!can) {
    GTEST_SKIP() << "the file system of the tests has no reflinks";
  }
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_NE(m_obstacle.find("shares blocks with another file"), std::string::npos);
  fs::remove(m_folder + "/copy");
  ASSERT_TRUE(find_flush_obstacle(m_folder, &m_obstacle).ok());
  EXPECT_EQ(m_obstacle, "");
}

TEST_F(FlushObstacleTest, DirectoryThatIsNotThereIsTold) {
  EXPECT_EQ(find_flush_obstacle(m_folder + "/nowhere", &m_obstacle).error_number(), ENOENT);
}

}  // namespace
}  // namespace vtkv
