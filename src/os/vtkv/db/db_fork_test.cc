// SPDX-License-Identifier: LGPL-2.1-or-later
// A fork of the process that has a database open, on the host.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "vtkv/db.h"

namespace vtkv {
namespace {

class DbForkTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "db_fork_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    m_base = std::filesystem::absolute(name);
    m_options.geometry = {.log_segment_bytes = 256 << 10, .initial_log_segments = 3, .zone_bytes = 128 << 10};
    m_options.memtable_bytes = 16 << 10;
    ASSERT_TRUE(DB::create(posix_env(), m_base + "/db", m_options).ok());
  }
  void TearDown() override {
    m_db.reset();
    std::filesystem::remove_all(m_base);
  }
  // What the child does ends within that time, or the test fails and the child is killed.
  static int in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(42);
    }
    int status = 0;
    for (int i = 0; i < 1000; ++i) {
      if (::waitpid(child, &status, WNOHANG) == child) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -2;
  }
  void write(int first, int count) {
    for (int i = first; i < first + count; ++i) {
      WriteBatch batch;
      batch.put("key" + std::to_string(i), std::string(200, 'v'));
      const Status status = m_db->write(std::move(batch), {.sync = i % 10 == 0});
      ASSERT_TRUE(status.ok()) << status.to_string();
    }
  }
  void expect_all(int count) {
    std::string value;
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(m_db->get("key" + std::to_string(i), &value).ok()) << i;
    }
  }
  // Nobody waits for it, as lock_file() would.
  bool is_locked() const {
    const int descriptor = ::open((m_base + "/db/lock").c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(descriptor, 0);
    const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    ::close(descriptor);
    return !locked;
  }

  std::string m_base;
  Options m_options;
  std::unique_ptr<DB> m_db;
};

// A child that returns from main, or that an exception takes through the owner of the database.
TEST_F(DbForkTest, AChildThatDestroysItsCopyHarmsNobody) {
  ASSERT_TRUE(DB::open(posix_env(), m_base + "/db", m_options, &m_db).ok());
  for (int round = 0; round < 5; ++round) {
    write(round * 200, 200);  // workers are in the middle of something
    EXPECT_EQ(in_child([this] { m_db.reset(); }), 42);
    write(round * 200 + 100, 100);
    expect_all(round * 200 + 200);
    ASSERT_TRUE(m_db->flush().ok());
  }
  EXPECT_TRUE(is_locked());
  m_db.reset();
  EXPECT_FALSE(is_locked());
  ASSERT_TRUE(DB::open(posix_env(), m_base + "/db", m_options, &m_db).ok());
  expect_all(1000);
}

TEST_F(DbForkTest, AChildOfAReaderDoesNotUnlock) {
  ASSERT_TRUE(DB::open_read_only(posix_env(), m_base + "/db", m_options, &m_db).ok());
  EXPECT_EQ(in_child([this] { m_db.reset(); }), 42);
  EXPECT_TRUE(is_locked());
}

// Nor one that has the lock alone.
TEST_F(DbForkTest, AChildDoesNotGiveUpALock) {
  std::unique_ptr<FileLock> lock;
  ASSERT_TRUE(posix_env()->lock_file(m_base + "/db/lock", &lock).ok());
  EXPECT_EQ(in_child([&] { lock.reset(); }), 42);
  EXPECT_TRUE(is_locked());
  lock.reset();
  EXPECT_FALSE(is_locked());
}

}  // namespace
}  // namespace vtkv
