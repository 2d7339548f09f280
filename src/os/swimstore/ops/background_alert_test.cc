// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/ops/background_alert.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

namespace swimstore {

using vtkv::BackgroundError;
using vtkv::Status;

namespace {

std::string alert_of(const std::vector<BackgroundError>& of_databases,
                     const std::vector<BackgroundError>& of_containers = {}) {
  osd_alert_list_t alerts;
  add_background_alert("/var/lib/osd", "/mnt/osd", "/mnt/fast", {of_databases, of_containers}, &alerts);
  return alerts.empty() ? "" : alerts.at("SWIMSTORE_BACKGROUND_ERROR");
}

}  // namespace

TEST(BackgroundAlertTest, NamesWhatFailedAndTheRemedy) {
  const std::string text = alert_of({{&vtkv::kFlushWork, Status::from_errno(ENOSPC, "cannot write /osd/tree"), 3}});
  EXPECT_NE(text.find("/var/lib/osd"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot write /osd/tree"), std::string::npos) << text;
  EXPECT_NE(text.find("free space on /mnt/fast"), std::string::npos) << text;
}

TEST(BackgroundAlertTest, NamesTheFileSystemThatHasNoRoom) {
  constexpr vtkv::BackgroundWork kWork{"keeping the reserve of space", "nothing"};
  const std::string text = alert_of({}, {{&kWork, Status::from_errno(ENOSPC, "cannot write"), 1}});
  EXPECT_NE(text.find("free space on /mnt/osd"), std::string::npos) << text;
}

TEST(BackgroundAlertTest, DamageIsNotRepairedByFreeSpace) {
  const std::string text =
      alert_of({{&vtkv::kCompactionWork, Status::corruption("cannot read 4096 bytes of /osd/tree"), 1}});
  EXPECT_EQ(text.find("free space"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel's log"), std::string::npos) << text;
}

// Which would send an operator to exchange a sound one.
TEST(BackgroundAlertTest, WhatTheHostRefusesIsNoFaultOfTheDisk) {
  for (const auto& [error_number, words] : std::map<int, std::string>{
           {EMFILE, "LimitNOFILE"}, {EPERM, "'lsattr -R /mnt/fast'"}, {EROFS, "remount,rw"}, {EDQUOT, "quota"}}) {
    const std::string text =
        alert_of({{&vtkv::kSegmentsWork, Status::from_errno(error_number, "cannot open /osd/log"), 1}});
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.find("errors of the disk"), std::string::npos) << text;
    EXPECT_EQ(text.find("free space"), std::string::npos) << text;
  }
}

TEST(BackgroundAlertTest, AFullListIsNotRepairedByFreeSpace) {
  const Status status = Status::make(Status::Code::no_space, "more than it can list", vtkv::kListIsFull);
  const std::string text = alert_of({{&vtkv::kFlushWork, status, 1}});
  EXPECT_EQ(text.find("free space"), std::string::npos) << text;
  EXPECT_NE(text.find("more than it can list"), std::string::npos) << text;
}

TEST(BackgroundAlertTest, EveryFailureIsInIt) {
  const std::string text = alert_of({{&vtkv::kFlushWork, Status::from_errno(ENOSPC, "one"), 3},
                                     {&vtkv::kCollectWork, Status::from_errno(ENOSPC, "other"), 1}});
  EXPECT_NE(text.find("one"), std::string::npos) << text;
  EXPECT_NE(text.find("other"), std::string::npos) << text;
}

TEST(BackgroundAlertTest, NothingFailsNoAlert) { EXPECT_EQ(alert_of({}), ""); }

TEST(BackgroundAlertTest, SlotsThatCannotBeWrittenAreCounted) {
  osd_alert_list_t alerts;
  add_quarantine_alert("/var/lib/osd", {}, &alerts);
  EXPECT_TRUE(alerts.empty());
  add_quarantine_alert("/var/lib/osd", {{0, 5}, {10, 7}}, &alerts);
  const std::string text = alerts.at("SWIMSTORE_QUARANTINE");
  EXPECT_NE(text.find("2 slots of 4100 KiB"), std::string::npos) << text;
}

TEST(BackgroundAlert, CubesThatAreAbandonedAreNamedWithTheRemedy) {
  osd_alert_list_t alerts;
  add_abandoned_alert("/var/lib/osd", {}, &alerts);
  EXPECT_TRUE(alerts.empty());
  add_abandoned_alert("/var/lib/osd", {{2, "its tree is damaged"}, {4, "no manifest"}}, &alerts);
  const std::string text = alerts.at("SWIMSTORE_CUBE_FAILED");
  for (const char* part : {"/var/lib/osd", "cube 2 (its tree is damaged), cube 4 (no manifest)",
                           "ceph-swimstore-tool reset /var/lib/osd --cube 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace swimstore
