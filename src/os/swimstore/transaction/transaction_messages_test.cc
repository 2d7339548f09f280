// SPDX-License-Identifier: LGPL-2.1-or-later
// What the log says of a transaction, by level, and how the process ends when nothing can be made durable any more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/ceph_context.h"
#include "common/code_environment.h"
#include "log/Log.h"
#include "swimstore/ops/metadata_failure.h"
#include "swimstore/testing/sim_store_fixture.h"

namespace swimstore {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CommitLogTest : public SimStoreFixture {
 protected:
  void TearDown() override {
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    SimStoreFixture::TearDown();
  }
  void write() {
    ceph::bufferlist bytes;
    bytes.append(std::string(8192, 'x'));
    ObjectStore::Transaction txn;
    txn.write(kPg, named("object"), 4096, 8192, bytes);
    m_store->queue_transaction(m_pg, std::move(txn));
    m_env.run_until_idle();
  }
  static void set_level(const std::string& level) {
    g_ceph_context->_log->flush();
    const std::string name = g_ceph_context->_conf->subsys.get_name(SWIM_SUBSYS);
    g_ceph_context->_conf.set_val_or_die("debug_" + name, level);
    g_ceph_context->_conf.apply_changes(nullptr);
  }
  std::string logged(const std::string& level) {
    set_level(level);
    testing::internal::CaptureStderr();
    write();
    set_level("1");
    return testing::internal::GetCapturedStderr();
  }
  void fail_to_write(int error_number = EIO) {
    m_env.fail_nth(vtkv::SimCall::write, 1, vtkv::Status::from_errno(error_number, "injected"), true);
    write();
  }
};

TEST_F(CommitLogTest, TheLevelsTellMoreAndMoreOfATransaction) {
  EXPECT_THAT(logged("1"), Not(HasSubstr("transaction")));
  const std::string at5 = logged("5");
  EXPECT_THAT(
      at5, AllOf(HasSubstr("of 1.0_head: 1 operations, 8"), HasSubstr("is durable after"), Not(HasSubstr("object"))));
  const std::string at10 = logged("10");
  EXPECT_THAT(at10, AllOf(HasSubstr("is durable after"), HasSubstr(":object:head# 4096~8192"), Not(HasSubstr("slot"))));
  EXPECT_THAT(logged("20"),
              AllOf(HasSubstr(":object:head# 4096~8192"), HasSubstr("slot 8K/"), HasSubstr("8192 bytes")));
}

// A signal, which Ceph makes a crash report of. Its handler ends a process whose device failed by EIO, without a core.
TEST_F(CommitLogTest, AnOsdThatCannotWriteLeavesACrashReport) {
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  EXPECT_EXIT(fail_to_write(), ::testing::ExitedWithCode(EIO), "nothing can be made durable any more");
}

// As Ceph's handler: the first thread writes the report, others come back from it, and end the process by that.
void report_crash(int) {
  static std::atomic<bool> reporting{false};
  if (!reporting.exchange(true)) {
    ::sleep(1);
    ::_exit(42);
  }
}

TEST_F(CommitLogTest, TheFirstThatEndsAnOsdIsNotCutShortByTheNext) {
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  const auto fail_twice = [this] {
    ::signal(SIGABRT, report_crash);
    std::thread reader([] {
      const MetadataFailure failure(g_ceph_context, kPath, MetadataFailure::Policy::end_process, {});
      failure.met(0, vtkv::Status::corruption("damaged"), "an object");
    });
    fail_to_write();
    reader.join();
  };
  EXPECT_EXIT(fail_twice(), ::testing::ExitedWithCode(42), "");
}

// A limit of its own (RLIMIT_FSIZE) says nothing of the disk.
TEST_F(CommitLogTest, TheRemedyOfAnOsdThatCannotWriteIsThatOfTheError) {
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  EXPECT_EXIT(fail_to_write(EFBIG), ::testing::ExitedWithCode(EIO),
              "Remedy: a file may not be that large: .*LimitFSIZE");
}

TEST_F(CommitLogTest, AToolThatCannotWriteEnds) {
  g_code_env = CODE_ENVIRONMENT_UTILITY;
  EXPECT_EXIT(fail_to_write(), ::testing::ExitedWithCode(2), "nothing can be made durable any more");
}

}  // namespace
}  // namespace swimstore
