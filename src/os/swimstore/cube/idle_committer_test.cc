// SPDX-License-Identifier: LGPL-2.1-or-later
// What a cube says of its last transaction when none follows.

#include "swimstore/cube/idle_committer.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "swimstore/cube/cube.h"
#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using namespace std::chrono_literals;

class Put final : public CubeTransaction {
 public:
  explicit Put(bool is_relaxed) {
    relaxed = is_relaxed;
    batch.put("key", "value");
  }

 private:
  void committed(const vtkv::Status&) override {}
};

// Of a relaxed one the record that says that it is durable may be formed only when its flush is over.
TEST(IdleCommitter, ARecordSaysThatTheLastTransactionIsDurable) {
  for (const bool relaxed : {false, true}) {
    for (const bool after_checkpoint : {false, true}) {
      vtkv::SimEnv env({.record = false});
      CubeOptions options;
      options.database.geometry = {.log_segment_bytes = 64 << 10, .initial_log_segments = 3, .zone_bytes = 64 << 10};
      options.containers.chunk_bytes = 64 << 10;
      options.containers.reserve_bytes = 64 << 10;
      ASSERT_TRUE(Cube::create(&env, "/cube", options).ok());
      std::unique_ptr<Cube> cube;
      ASSERT_TRUE(Cube::open(&env, "/cube", options, &cube).ok());
      Put before(false), last(relaxed);
      cube->submit(&before);
      env.advance(3s);
      if (after_checkpoint) {
        ASSERT_TRUE(cube->database().flush().ok());
        env.advance(3s);
      }
      cube->submit(&last);
      env.advance(3s);
      EXPECT_GE(cube->database().reuse_horizon(), last.last_sequence) << relaxed << after_checkpoint;
      cube.reset();
    }
  }
}

}  // namespace
}  // namespace swimstore
