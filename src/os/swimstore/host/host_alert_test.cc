// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/host_alert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>

#include "log/Log.h"
#include "swimstore/testing/admin_command.h"
#include "swimstore/testing/sim_store_fixture.h"
#include "vtkv/env/ring_refusal.h"

namespace swimstore {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostAlert, DangersAreToldWhileThereAreSome) {
  osd_alert_list_t alerts;
  add_unsafe_host_alert({}, &alerts);
  EXPECT_TRUE(alerts.empty());
  add_unsafe_host_alert({"/osd lies on an ext2", "/fast lies on a disk"}, &alerts);
  EXPECT_THAT(alerts.at("SWIMSTORE_UNSAFE_HOST"), AllOf(HasSubstr("an ext2. /fast"), HasSubstr("on a disk")));
}

class BlockingIoTest : public SimStoreFixture {
 protected:
  // Whether all who ask are told.
  int ask() {
    std::string status;
    EXPECT_EQ(0, admin_command(R"("prefix": "swimstore status")", &status));
    std::map<std::string, std::string> metadata;
    m_store->collect_metadata(&metadata);
    store_statfs_t report;
    osd_alert_list_t alerts;
    EXPECT_EQ(0, m_store->statfs(&report, &alerts));
    const bool in_status = status.find("kernel.io_uring_disabled") != std::string::npos;
    const bool in_alerts = alerts.contains("SWIMSTORE_BLOCKING_IO") &&
                           alerts.at("SWIMSTORE_BLOCKING_IO").find("kernel.io_uring_disabled") != std::string::npos;
    return (in_status ? 1 : 0) + (metadata["swimstore_io"] == "blocking" ? 2 : 0) + (in_alerts ? 4 : 0);
  }
  // The process knows it from its first ring on.
  void mount_refused() {
    m_pg.reset();
    ASSERT_EQ(0, m_store->umount());
    vtkv::note_ring_refusal(vtkv::Status::from_errno(EPERM, "cannot set up io_uring"));
    ASSERT_EQ(0, m_store->mount());
    g_ceph_context->_log->flush();
    ::_exit(ask());
  }
};

TEST_F(BlockingIoTest, WithIoUringNobodyIsToldOfIt) {
  std::string status;
  ASSERT_EQ(0, admin_command(R"("prefix": "swimstore status")", &status));
  EXPECT_THAT(status, HasSubstr(R"("io": "io_uring")"));
  std::map<std::string, std::string> metadata;
  m_store->collect_metadata(&metadata);
  EXPECT_EQ(metadata["swimstore_io"], "io_uring");
  EXPECT_EQ(ask(), 0);
}

TEST_F(BlockingIoTest, ARefusalIsInLogStatusMetadataAndAlerts) {
  EXPECT_EXIT(mount_refused(), ::testing::ExitedWithCode(1 + 2 + 4),
              "swimstore\\(/store\\) the host refuses io_uring .*kernel.io_uring_disabled");
}

}  // namespace
}  // namespace swimstore
