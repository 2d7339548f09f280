// SPDX-License-Identifier: LGPL-2.1-or-later
// A tree in the simulator, made by the test when it has chosen the options.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "vtkv/testing/sim_env.h"
#include "vtkv/tree/tree.h"

namespace vtkv {

class TreeFixture : public testing::Test {
 protected:
  TreeFixture() { m_options.geometry.zone_bytes = 64 << 10; }

  void make() {
    ASSERT_TRUE(m_env.create_directory("/db").ok());
    ASSERT_TRUE(Tree::create(&m_env, "/db", m_options.geometry, Uuid{1, 2, 3}, {}).ok());
    open();
  }
  // Also again, with what is on disk.
  void open() {
    m_tree.reset();
    const Status status = Tree::open(&m_env, "/db", m_options, &m_tree);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  SimEnv m_env{{.record = false}};
  Options m_options;
  std::unique_ptr<Tree> m_tree;
  SequenceNumber m_sequence = 0;
};

}  // namespace vtkv
