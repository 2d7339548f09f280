// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/host/unknown_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace swimstore {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class UnknownOptionsTest : public ::testing::Test {
 protected:
  UnknownOptionsTest() { EXPECT_NE(::mkdtemp(m_folder.data()), nullptr); }
  ~UnknownOptionsTest() override { std::filesystem::remove_all(m_folder); }

  // As osd.7 starts with this file.
  std::vector<std::string> found_in(const std::string& text) const {
    std::ofstream(file()) << text;
    ConfigProxy conf(true);
    conf->name.set(CEPH_ENTITY_TYPE_OSD, "7");
    std::ostringstream warnings;
    EXPECT_EQ(0, conf.parse_config_files(file().c_str(), &warnings, 0)) << warnings.str();
    return find_unknown_options(conf);
  }
  std::string file() const { return m_folder + "/ceph.conf"; }

  std::string m_folder = "/tmp/unknown_options_test.XXXXXX";
};

TEST_F(UnknownOptionsTest, WhatExistsIsNotTold) {
  EXPECT_THAT(found_in("[global]\n"
                       "fsid = 11111111-2222-3333-4444-555555555555\n"
                       "[osd]\n"
                       "swimstore io depth = 64\n"  // as Ceph takes it, too
                       "swimstore-throttle-bytes = 1M\n"
                       "[osd.7]\n"
                       "swimstore_cubes = 2\n"
                       "bluestore_no_such_thing = 1\n"),
              IsEmpty());
}

TEST_F(UnknownOptionsTest, AMisspeltOneIsNamedWithItsPlaceAndTheOneThatIsMeant) {
  EXPECT_THAT(found_in("[osd]\nswimstore io dept = 64\n"),
              ElementsAre(AllOf(HasSubstr("swimstore_io_dept in section [osd] of " + file()),
                                HasSubstr("is swimstore_io_depth meant?"))));
}

TEST_F(UnknownOptionsTest, EachSectionThatTheDaemonReadsIsLookedAtAndNoOther) {
  EXPECT_THAT(found_in("[global]\nswimstore_one_of_all = 1\n"
                       "[osd]\nswimstore_one_of_osds = 1\n"
                       "[osd.7]\nswimstore_one_of_seven = 1\n"
                       "[osd.8]\nswimstore_one_of_eight = 1\n"
                       "[client]\nswimstore_one_of_clients = 1\n"),
              ElementsAre(HasSubstr("_of_seven"), HasSubstr("_of_osds"), HasSubstr("_of_all")));
}

TEST_F(UnknownOptionsTest, WithoutAFileThereIsNothing) {
  EXPECT_THAT(find_unknown_options(ConfigProxy(true)), IsEmpty());
}

TEST_F(UnknownOptionsTest, OnlyANearNameIsProposed) {
  EXPECT_EQ(nearest_option("swimstore_memtable_sise"), "swimstore_memtable_size");
  EXPECT_EQ(nearest_option("swimstore_throttle_byte"), "swimstore_throttle_bytes");
  EXPECT_EQ(nearest_option("swimstore_entirely_unlike_anything"), "");
  EXPECT_NE(nearest_option("swimstore_stretch_siz"), "swimstore_stretch_size");  // tidy: allow the old name
}

TEST_F(UnknownOptionsTest, TheAlertHasAllOfThem) {
  osd_alert_list_t alerts;
  add_unknown_options_alert("/osd", {}, &alerts);
  EXPECT_TRUE(alerts.empty());
  add_unknown_options_alert("/osd", {"one is no option", "two is no option"}, &alerts);
  EXPECT_THAT(alerts.at("SWIMSTORE_UNKNOWN_OPTION"),
              AllOf(HasSubstr("/osd"), HasSubstr("one is"), HasSubstr("two is")));
}

}  // namespace
}  // namespace swimstore
