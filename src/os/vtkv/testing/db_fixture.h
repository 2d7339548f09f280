// SPDX-License-Identifier: LGPL-2.1-or-later
// A fresh database for each test: in the simulator, or on the host when GetParam() says so.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {

class DbFixture : public testing::TestWithParam<bool> {
 protected:
  // Makes the database; m_db is the test's to open.
  void SetUp() override {
    if (GetParam()) {
      m_env = posix_env();
      char name[] = "db_test.XXXXXX";
      ASSERT_NE(mkdtemp(name), nullptr);
      m_base = std::filesystem::absolute(name);
    } else {
      m_sim = std::make_unique<SimEnv>(SimOptions{.record = false});
      m_env = m_sim.get();
      ASSERT_TRUE(m_env->create_directory("/base").ok());
      m_base = "/base";
    }
    m_directory = m_base + "/db";
    m_options.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.memtable_bytes = 16 << 10;
    const Status status = DB::create(m_env, m_directory, m_options);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override {
    m_db.reset();
    if (GetParam() && !m_base.empty()) {
      std::filesystem::remove_all(m_base);
    }
  }

  std::unique_ptr<SimEnv> m_sim;
  Env* m_env = nullptr;
  std::string m_base;
  std::string m_directory;
  Options m_options;
  std::unique_ptr<DB> m_db;
};

}  // namespace vtkv
