// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/posix/file_system_info.h"

#include <gtest/gtest.h>

#include <sstream>

namespace vtkv {
namespace {

constexpr const char* kMountInfo =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "30 22 8:17 / /srv/osd\\040one rw,noatime shared:7 master:2 - ext4 /dev/sdb1 rw,data=journal\n"
    "31 22 8:33 / /srv/osd rw,relatime - xfs /dev/sdc1 rw,attr2,inode64\n"
    "32 31 0:44 / /srv/osd/over rw - overlay overlay rw,lowerdir=/a,upperdir=/b\n"
    "33 22 8:49 / /srv/osd rw,relatime - xfs /dev/sdd1 rw\n"
    "a line that is none\n";

Mount mount_of(const std::string& path) {
  std::istringstream mountinfo(kMountInfo);
  return find_mount(mountinfo, path);
}

TEST(FileSystemInfo, FindsTheMountOnTop) {
  EXPECT_EQ(mount_of("/etc").source, "/dev/sda1");
  EXPECT_EQ(mount_of("/srv/osd/0").source, "/dev/sdd1");
  EXPECT_EQ(mount_of("/srv/osdx").source, "/dev/sda1");
  const Mount spaced = mount_of("/srv/osd one/0");
  EXPECT_EQ(spaced.point, "/srv/osd one");
  EXPECT_EQ(spaced.type, "ext4");
  EXPECT_EQ(spaced.options, "rw,data=journal");
  EXPECT_EQ(mount_of("/srv/osd/over/0").type, "overlay");
}

TEST(FileSystemInfo, KnowsAJournalOfData) {
  EXPECT_TRUE(journals_data("rw,data=journal"));
  EXPECT_TRUE(journals_data("data=journal,rw"));
  EXPECT_TRUE(journals_data("rw\ndelalloc\ndata=journal\ncommit=5\n"));  // as /proc/fs/ext4 has it
  EXPECT_FALSE(journals_data("rw,data=ordered"));
  EXPECT_FALSE(journals_data("rw,xdata=journal,data=journalled"));
  EXPECT_FALSE(journals_data(""));
}

// As the kernel writes it, of this process.
TEST(FileSystemInfo, TellsWhatTheTestsRunOn) {
  FileSystemInfo info;
  ASSERT_TRUE(read_file_system_info(".", &info).ok());
  EXPECT_FALSE(info.mount_point.empty());
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_FALSE(read_file_system_info("/nowhere/at/all", &info).ok());
}

}  // namespace
}  // namespace vtkv
