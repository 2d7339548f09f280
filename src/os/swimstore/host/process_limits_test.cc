// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/process_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/code_environment.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void limit_files(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

class ProcessLimitsTest : public SimStoreFixture {
 protected:
  void TearDown() override {
    limit_files(RLIM_INFINITY);
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    SimStoreFixture::TearDown();
  }
};

TEST_F(ProcessLimitsTest, ALimitOfFileSizesIsNamedWithItsRemedy) {
  EXPECT_TRUE(check_file_size_limit().ok());
  limit_files(512u << 20);
  EXPECT_THAT(std::string(check_file_size_limit().message()),
              AllOf(HasSubstr("536870912 bytes (RLIMIT_FSIZE)"), HasSubstr("LimitFSIZE"), HasSubstr("ulimit -f")));
}

TEST_F(ProcessLimitsTest, UnderItNoStoreIsMadeAndNoOsdStarts) {
  m_pg.reset();
  ASSERT_EQ(0, m_store->umount());
  limit_files(512u << 20);
  EXPECT_EQ(0, m_store->mount());  // by a tool
  ASSERT_EQ(0, m_store->umount());
  ASSERT_TRUE(m_env.create_directory("/other").ok());
  EXPECT_EQ(-EINVAL, SwimStore(g_ceph_context, "/other", &m_env).mkfs());
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  EXPECT_EQ(-EINVAL, m_store->mount());
  limit_files(RLIM_INFINITY);
  EXPECT_EQ(0, m_store->mount());
}

void write_beyond_the_limit() {
  ignore_file_size_signal();
  const int file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  limit_files(4096);
  const bool refused = ::pwrite(file, "x", 1, 8192) < 0 && errno == EFBIG;
  ::_exit(refused ? 42 : 1);
}

// A limit may also be set on a process that runs (prlimit).
TEST_F(ProcessLimitsTest, AWriteBeyondItIsAnErrorAndNoSignal) {
  EXPECT_EXIT(write_beyond_the_limit(), ::testing::ExitedWithCode(42), "");
  EXPECT_EQ(SIG_IGN, ::signal(SIGXFSZ, SIG_IGN)) << "the fixture's store has it ignored";
}

}  // namespace
}  // namespace swimstore
