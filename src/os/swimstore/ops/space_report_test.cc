// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/space_report.h"

#include <gtest/gtest.h>

namespace swimstore {

namespace {

constexpr uint64_t kMiB = 1u << 20;

class SpaceReportTest : public ::testing::Test {
 protected:
  SpaceReportTest() {
    m_host.total_bytes = 1000 * kMiB;
    m_host.available_bytes = 600 * kMiB;
    m_slots.owned_bytes = 200 * kMiB;
    m_slots.free_bytes = 50 * kMiB;
    m_slots.growable_bytes = 500 * kMiB;
    m_database.log_file_bytes = 100 * kMiB;
    m_database.tree_file_bytes = 20 * kMiB;
    m_limits = {64 * kMiB, 0.01};
  }
  store_statfs_t report() const {
    ContainerStatistics slots = m_slots;
    slots.file_bytes = slots.owned_bytes + slots.free_bytes + m_reserved_bytes;
    return space_report(m_host, m_metadata_host, slots, m_database, m_sum, m_limits);
  }

  vtkv::FileSystemInfo m_host;
  const MetadataHost* m_metadata_host = nullptr;
  ContainerStatistics m_slots;
  uint64_t m_reserved_bytes = 0;  // in slots that are being written or primed, or that are quarantined
  vtkv::DBStatistics m_database;
  PoolUsage m_sum;
  SpaceLimits m_limits;
};

}  // namespace

TEST_F(SpaceReportTest, FreeSlotsAndTheHostsSpaceAreAvailable) { EXPECT_EQ(550 * kMiB, report().available); }

TEST_F(SpaceReportTest, TheReserveIsNeitherUsedNorAvailable) {
  EXPECT_EQ(100 * kMiB, report().internally_reserved);
  // Slots that hold data, log and tree.
  EXPECT_EQ(320 * kMiB, report().get_used());
}

TEST_F(SpaceReportTest, AllThatTheStoreHoldsIsPartOfItsSize) {
  const uint64_t before = report().total;
  EXPECT_EQ(970 * kMiB, before);
  m_reserved_bytes = 10 * kMiB;
  m_slots.reserve_bytes = 20 * kMiB;
  m_host.available_bytes -= 30 * kMiB;
  EXPECT_EQ(before, report().total);
  EXPECT_EQ(330 * kMiB, report().get_used());
}

TEST_F(SpaceReportTest, TheStoreIsNeverLargerThanItsHost) {
  m_database.tree_file_bytes += 100 * kMiB;  // since the host was asked
  EXPECT_EQ(m_host.total_bytes, report().total);
  EXPECT_LE(report().available, report().total);
}

TEST_F(SpaceReportTest, OtherUsersOfTheHostShrinkTheStore) {
  const uint64_t before = report().total;
  m_host.available_bytes -= 100 * kMiB;
  EXPECT_EQ(before - 100 * kMiB, report().total);
}

TEST_F(SpaceReportTest, AFullHostMeansAFullStore) {
  m_host.available_bytes = 10 * kMiB;
  m_slots.growable_bytes = 0;
  m_slots.reserve_target_bytes = 60 * kMiB;
  m_slots.reserve_bytes = 40 * kMiB;
  // Past any full ratio of the cluster that can be, but below the one at which an OSD drops deletes.
  EXPECT_GT(report().get_used_raw_ratio(), 0.965);
  EXPECT_LT(report().get_used_raw_ratio(), 0.97);
  osd_alert_list_t alerts;
  add_space_alerts("/osd", m_host, m_slots, m_limits, {}, &alerts);
  EXPECT_EQ(1u, alerts.count("SWIMSTORE_HOST_FULL"));
}

// One below the cluster's full ratio would stop nobody; it may be given in percent, as for the OSD.
TEST(SpaceLimitsTest, TheFailsafeRatioIsReadAsTheOsdReadsIt) {
  for (const auto& [option, ratio] :
       {std::pair{"0.97", 0.97}, {"0.98", 0.98}, {"98", 0.98}, {"0.96", 0.96}, {"0.9", 0.952}}) {
    ConfigProxy conf{false};
    ASSERT_EQ(0, conf.set_val("osd_failsafe_full_ratio", option)) << option;
    EXPECT_DOUBLE_EQ(ratio, SpaceLimits::read(conf).failsafe_full_ratio) << option;
  }
}

// Data stops growing a little below host_free_min: what is deleted then can be written anew.
TEST_F(SpaceReportTest, FreeSlotsCountOnAHostThatDataHasFilled) {
  m_host.available_bytes = 32 * kMiB;
  m_slots.growable_bytes = 0;
  m_slots.free_bytes = 500 * kMiB;
  m_slots.reserve_target_bytes = m_slots.reserve_bytes = 60 * kMiB;
  EXPECT_EQ(500 * kMiB, report().available);
  osd_alert_list_t alerts;
  add_space_alerts("/osd", m_host, m_slots, m_limits, {}, &alerts);
  EXPECT_TRUE(alerts.empty());
}

// Half of the reserve became slots, and these are free now.
TEST_F(SpaceReportTest, FreeSlotsCountThoughTheReserveWasLentToData) {
  m_host.available_bytes = 15 * kMiB;
  m_slots.growable_bytes = 0;
  m_slots.free_bytes = 500 * kMiB;
  m_slots.reserve_target_bytes = 60 * kMiB;
  m_slots.reserve_bytes = 30 * kMiB;
  m_slots.reserve_lent_bytes = 30 * kMiB;
  EXPECT_EQ(500 * kMiB, report().available);
  m_slots.reserve_bytes = 10 * kMiB;  // the log took more
  EXPECT_GT(report().get_used_raw_ratio(), 0.95);
  m_slots.reserve_lent_bytes = 50 * kMiB;  // data did, and transactions find no room for what goes to the log
  EXPECT_GT(report().get_used_raw_ratio(), 0.95);
}

TEST_F(SpaceReportTest, WhatIsOnItsWayIsNotAvailable) {
  const uint64_t used = report().get_used();
  m_limits.on_its_way_bytes = 40 * kMiB;
  m_slots.kept_bytes = 10 * kMiB;
  EXPECT_EQ(500 * kMiB, report().available);
  EXPECT_EQ(used, report().get_used());
  m_limits.on_its_way_bytes = 1u << 30;
  EXPECT_EQ(540 * kMiB - report().total / 16, report().available);
}

TEST_F(SpaceReportTest, WritesThatWaitRaiseAnAlert) {
  osd_alert_list_t alerts;
  add_space_alerts("/osd", m_host, m_slots, m_limits, {3, 12}, &alerts);
  EXPECT_NE(alerts["SWIMSTORE_NO_SPACE"].find("3 writes wait"), std::string::npos);
}

// On a file system of their own.
TEST_F(SpaceReportTest, LogAndTreeThatAreShortOfRoomMakeTheStoreFull) {
  MetadataHost metadata_host{"/fast/osd", {}};
  metadata_host.file_system.total_bytes = 1000 * kMiB;
  metadata_host.file_system.available_bytes = 128 * kMiB;
  m_metadata_host = &metadata_host;
  EXPECT_EQ(550 * kMiB, report().available);
  EXPECT_EQ(200 * kMiB, report().get_used());  // without log and tree
  osd_alert_list_t alerts;
  add_metadata_alerts(metadata_host, m_limits, &alerts);
  EXPECT_TRUE(alerts.empty());

  metadata_host.file_system.available_bytes = 80 * kMiB;  // a quarter of the way: backfill ends, clients go on
  EXPECT_GT(report().get_used_raw_ratio(), 0.8);
  EXPECT_LT(report().get_used_raw_ratio(), 0.95);
  add_metadata_alerts(metadata_host, m_limits, &alerts);
  EXPECT_EQ(1u, alerts.count("SWIMSTORE_METADATA_NEARLY_FULL"));

  metadata_host.file_system.available_bytes = 60 * kMiB;
  EXPECT_GT(report().get_used_raw_ratio(), 0.95);
  EXPECT_LT(report().get_used_raw_ratio(), 0.97);
  alerts.clear();
  add_metadata_alerts(metadata_host, m_limits, &alerts);
  EXPECT_EQ(1u, alerts.count("SWIMSTORE_METADATA_FULL"));
  EXPECT_EQ(0u, alerts.count("SWIMSTORE_NO_SPACE"));
  add_space_alerts("/osd", m_host, m_slots, m_limits, {3, 12}, &alerts);
  metadata_host.file_system.mount_point = "/fast";
  add_metadata_alerts(metadata_host, m_limits, &alerts);
  EXPECT_TRUE(alerts["SWIMSTORE_NO_SPACE"].ends_with("first of all on /fast")) << alerts["SWIMSTORE_NO_SPACE"];
  metadata_host.file_system.read_only = true;
  EXPECT_EQ(0u, report().available);
}

TEST_F(SpaceReportTest, AReadOnlyHostTakesNothing) {
  m_host.read_only = true;
  EXPECT_EQ(0u, report().available);
}

TEST_F(SpaceReportTest, AHealthyHostRaisesNoAlert) {
  osd_alert_list_t alerts;
  add_space_alerts("/osd", m_host, m_slots, m_limits, {}, &alerts);
  EXPECT_TRUE(alerts.empty());
}

}  // namespace swimstore
