// SPDX-License-Identifier: LGPL-2.1-or-later
// What a bench's store has acknowledged, as the next process finds it.

#include "swimstore/tool/acked_objects.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace swimstore {

namespace {

class AckedObjectsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(m_folder.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(m_folder); }
  std::string file() const { return m_folder + "/acked"; }

 private:
  std::string m_folder = "acked_objects_test.XXXXXX";
};

TEST_F(AckedObjectsTest, OutlivesAProcessThatIsKilled) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    AckedObjects acked;
    if (acked.create(file(), 3, 4096) == 0) {
      acked.pg(2).end += 7;
      acked.pg(2).first += 2;
    }
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status));
  AckedObjects acked;
  ASSERT_EQ(acked.open(file()), 0);
  EXPECT_EQ(acked.pgs(), 3u);
  EXPECT_EQ(acked.object_bytes(), 4096u);
  EXPECT_EQ(acked.pg(0).count(), 0u);
  EXPECT_EQ(acked.pg(2).first, 2u);
  EXPECT_EQ(acked.pg(2).count(), 5u);
}

TEST_F(AckedObjectsTest, IsNotMadeTwice) {
  EXPECT_EQ(AckedObjects().create(file(), 3, 4096), 0);
  EXPECT_EQ(AckedObjects().create(file(), 3, 4096), -EEXIST);
}

TEST_F(AckedObjectsTest, RefusesWhatIsNone) {
  EXPECT_EQ(AckedObjects().open(file()), -ENOENT);
  // Words: PGs, the objects' bytes, then of each PG its first object and the end.
  using Words = std::vector<uint64_t>;
  for (const Words& words : {Words{}, Words{0, 4096}, Words{1, 4096}, Words{1, 4096, 0}, Words{1, 0, 0, 0},
                             Words{1, 4096, 0, 0, 0}, Words{1, 4096, 1, 0}, Words(2 + 2 * 257, 257)}) {
    std::ofstream(file(), std::ios::trunc)
        .write(reinterpret_cast<const char*>(words.data()),
               static_cast<std::streamsize>(words.size() * sizeof(uint64_t)));
    EXPECT_EQ(AckedObjects().open(file()), -EINVAL) << words.size();
  }
  EXPECT_EQ(AckedObjects().create(file() + ".new", 257, 4096), -EINVAL);
}

TEST_F(AckedObjectsTest, NeedsNoFile) {
  AckedObjects acked;
  ASSERT_EQ(acked.create("", 2, 4096), 0);
  acked.pg(1).end += 4;
  EXPECT_EQ(acked.pg(1).count(), 4u);
  EXPECT_EQ(acked.pg(0).count(), 0u);
}

}  // namespace

}  // namespace swimstore
