// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vtkv/env/background_errors.h"

#include <gtest/gtest.h>

#include "vtkv/testing/sim_env.h"

namespace vtkv {
namespace {

class BackgroundErrorsTest : public testing::Test {
 protected:
  // How often it was told of what was noted.
  size_t note(const Status& status) {
    const size_t before = m_told.size();
    m_errors.note(kFlushWork, status);
    return m_told.size() - before;
  }

  const Status m_disk = Status::from_errno(ENOSPC, "write");
  const Status m_list = Status::make(Status::Code::no_space, "more than it can list", kListIsFull);
  SimEnv m_env{{.record = false}};
  std::vector<BackgroundError> m_told;
  BackgroundErrors m_errors{&m_env, [this](const BackgroundError& error) { m_told.push_back(error); }};
};

TEST_F(BackgroundErrorsTest, TheSameIsToldOnceAndItsEndToo) {
  EXPECT_EQ(note(Status()), 0u);
  EXPECT_EQ(note(m_disk), 1u);
  EXPECT_EQ(note(m_disk), 0u);
  EXPECT_EQ(note(Status()), 1u);
  EXPECT_EQ(note(Status()), 0u);
}

// Each asks for another remedy.
TEST_F(BackgroundErrorsTest, AnotherCauseIsToldToo) {
  EXPECT_EQ(note(m_list), 1u);
  EXPECT_EQ(note(m_disk), 1u);
  EXPECT_EQ(note(m_list), 1u);
  EXPECT_EQ(note(m_list), 0u);
  EXPECT_TRUE(is_list_full(m_told.back().status));
  EXPECT_EQ(m_errors.current().at(0).attempts, 4u);
}

}  // namespace
}  // namespace vtkv
