// SPDX-License-Identifier: LGPL-2.1-or-later
// What a store refuses to lie on, on real file systems.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/code_environment.h"
#include "global/global_context.h"
#include "swimstore/swimstore.h"
#include "swimstore/testing/small_store.h"

namespace swimstore {
namespace {

// qa/standalone/real-fs.py makes the folders, on file systems that lose what was synced.
std::vector<std::string> folder_of(const char* variable) {
  const char* const folder = std::getenv(variable);
  return folder == nullptr ? std::vector<std::string>() : std::vector<std::string>{folder};
}

class UnsafeHostTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    use_small_stores(g_ceph_context);
    std::filesystem::create_directories(m_path);
    ASSERT_EQ(0, SwimStore(g_ceph_context, m_path).mkfs());
  }
  void TearDown() override {
    g_code_env = CODE_ENVIRONMENT_UTILITY;
    use_small_stores(g_ceph_context);
    std::filesystem::remove_all(m_path);
  }

  const std::string m_path = GetParam() + "/allowed";
};

class UnsafeHostMountTest : public UnsafeHostTest {};
class UnsafeHostAlertTest : public UnsafeHostTest {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnsafeHostMountTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnsafeHostAlertTest);
INSTANTIATE_TEST_SUITE_P(Folder, UnsafeHostMountTest, ::testing::ValuesIn(folder_of("SWIM_UNSAFE_HOST_FOLDER")));
INSTANTIATE_TEST_SUITE_P(Folder, UnsafeHostAlertTest, ::testing::ValuesIn(folder_of("SWIM_UNSAFE_ALERT_FOLDER")));

TEST_P(UnsafeHostMountTest, IsRefusedToAnOsdAndNotToATool) {
  use_small_stores(g_ceph_context, {{"swimstore_allow_unproven_file_system", "false"}});
  SwimStore store(g_ceph_context, m_path);
  EXPECT_EQ(0, store.mount());
  EXPECT_EQ(0, store.umount());
  g_code_env = CODE_ENVIRONMENT_DAEMON;
  EXPECT_EQ(-EOPNOTSUPP, store.mount());
}

TEST_P(UnsafeHostAlertTest, StaysAnAlertWhereItIsAllowed) {
  SwimStore store(g_ceph_context, m_path);
  ASSERT_EQ(0, store.mount());
  store_statfs_t report;
  osd_alert_list_t alerts;
  EXPECT_EQ(0, store.statfs(&report, &alerts));
  ASSERT_TRUE(alerts.contains("SWIMSTORE_UNSAFE_HOST"));
  EXPECT_NE(alerts.at("SWIMSTORE_UNSAFE_HOST").find(m_path + " lies on "), std::string::npos);
  EXPECT_EQ(0, store.umount());
}

}  // namespace
}  // namespace swimstore
