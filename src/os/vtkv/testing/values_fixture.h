// SPDX-License-Identifier: LGPL-2.1-or-later
// A database in the simulator whose values stay in the log, with a collector that works only when asked.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "vtkv/db.h"
#include "vtkv/testing/sim_env.h"

namespace vtkv {

class ValuesFixture : public testing::Test {
 protected:
  explicit ValuesFixture(uint64_t log_segment_bytes = 64 << 10) {
    m_options.geometry = {.log_segment_bytes = log_segment_bytes, .initial_log_segments = 3, .zone_bytes = 64 << 10};
    m_options.value_separation_bytes = 100;
    m_options.space_amplification_target = 0;
  }
  void SetUp() override {
    ASSERT_TRUE(DB::create(&m_env, "/db", m_options).ok());
    open();
  }
  // Also again, with what is on disk.
  void open() {
    m_db.reset();
    const Status status = DB::open(&m_env, "/db", m_options, &m_db);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  static std::string key(int i) { return "key" + std::to_string(1000 + i); }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<DB> m_db;
};

}  // namespace vtkv
