// SPDX-License-Identifier: LGPL-2.1-or-later
// Cubes together, in the simulated host.

#include "swimstore/cube/cube_set.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "vtkv/testing/sim_env.h"

namespace swimstore {
namespace {

using vtkv::SimEnv;
using vtkv::Status;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr unsigned kCubes = 5;

class EmptyTransaction final : public CubeTransaction {
 public:
  bool done = false;

 private:
  void committed(const Status& status) override { done = status.ok(); }
};

class CubeSetTest : public testing::Test {
 protected:
  CubeSetTest() : m_env({.seed = 5, .capacity_bytes = 64 * kMiB, .record = false}) {
    m_options.database.geometry = {.log_segment_bytes = 128 * kKiB, .initial_log_segments = 2, .zone_bytes = 64 * kKiB};
    m_options.database.memtable_bytes = 64 * kKiB;
    m_options.database.single_flush = true;
    m_options.containers.chunk_bytes = 64 * kKiB;
    m_options.containers.primed_class_max = 0;
    m_options.containers.primed_ahead_bytes = 64 * kKiB;
    m_options.containers.reserve_bytes = kMiB;
    check(m_env.create_directory("/cubes"));
    check(CubeSet::create(&m_env, "/cubes", m_options, kCubes));
    open();
  }
  static void check(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }
  void open() {
    m_cubes.reset();
    check(CubeSet::open(&m_env, "/cubes", m_options, {.cubes = kCubes}, &m_cubes));
  }
  // One durable transaction that takes an object id.
  uint64_t take_id(unsigned cube) {
    EmptyTransaction transaction;
    const uint64_t id = (*m_cubes)[cube].new_object_id();
    transaction.delta.next_object_id = id + 1;
    (*m_cubes)[cube].submit(&transaction);
    m_env.run_until_idle();
    EXPECT_TRUE(transaction.done);
    return id;
  }
  uint64_t allocated(unsigned cube, uint64_t bytes) {
    std::vector<AllocatedSlot> slots;
    uint64_t writes = 0;
    while ((*m_cubes)[cube].containers().allocate(bytes, &slots).ok()) {
      ++writes;
    }
    (*m_cubes)[cube].containers().abandon(slots);
    return writes;
  }

  SimEnv m_env;
  CubeOptions m_options;
  std::unique_ptr<CubeSet> m_cubes;
};

TEST(CubeSet, HasOneCubeOrOneMoreThanAPowerOfTwo) {
  for (const unsigned cubes : {1u, 3u, 5u, 9u, 65u}) {
    EXPECT_TRUE(CubeSet::is_valid_count(cubes)) << cubes;
    EXPECT_EQ(CubeSet::cubes_for(CubeSet::data_cubes(cubes)), cubes);
  }
  for (const unsigned cubes : {0u, 2u, 4u, 6u, 64u, 129u}) {
    EXPECT_FALSE(CubeSet::is_valid_count(cubes)) << cubes;
  }
}

TEST(CubeSet, DividesWhatAStoreIsToHaveInAll) {
  CubeOptions total;
  total.database.geometry.log_segment_bytes = 64 * kMiB;
  total.containers.chunk_bytes = 32 * kMiB;
  const CubeOptions four = CubeSet::layout(total, 5);
  EXPECT_EQ(four.database.geometry.log_segment_bytes, 16 * kMiB);
  EXPECT_EQ(four.containers.chunk_bytes, 8 * kMiB);
  const CubeOptions many = CubeSet::layout(total, 65);
  EXPECT_EQ(many.containers.chunk_bytes, kSlotBytesMax) << "a chunk holds the largest slot";
  const CubeOptions one = CubeSet::layout(total, 1);
  EXPECT_EQ(one.database.geometry.log_segment_bytes, 64 * kMiB);
  EXPECT_EQ(one.containers.chunk_bytes, 32 * kMiB);
}

// So that the greater of two was taken later, whatever cubes took them.
TEST_F(CubeSetTest, AnObjectIdIsTakenOnceInAllCubes) {
  uint64_t last = 0;
  for (unsigned round = 0; round < 3; ++round) {
    for (const unsigned cube : {1u, 4u, 0u, 1u}) {
      const uint64_t id = take_id(cube);
      EXPECT_GT(id, last);
      last = id;
    }
    open();
  }
}

TEST_F(CubeSetTest, CountTheHostAndTheReserveOnce) {
  const ContainerStatistics all = m_cubes->container_statistics();
  const ContainerStatistics one = (*m_cubes)[2].containers().statistics();
  EXPECT_EQ(all.growable_bytes, one.growable_bytes);
  EXPECT_EQ(all.reserve_target_bytes, kMiB);
  EXPECT_EQ(all.kept_bytes, kCubes * one.kept_bytes);
  EXPECT_LE(all.kept_bytes, kMiB / 8);
  uint64_t file_bytes = 0;
  for (unsigned cube = 0; cube < kCubes; ++cube) {
    file_bytes += (*m_cubes)[cube].containers().statistics().file_bytes;
  }
  EXPECT_EQ(all.file_bytes, file_bytes);
}

// One cube had filled the host, and all of it is free again: another gets it.
TEST_F(CubeSetTest, WhatIsFreeInOneCubeBecomesRoomForAnother) {
  EXPECT_GT(allocated(1, 64 * kKiB), 700u);
  const uint64_t before = allocated(2, 64 * kKiB);
  for (int i = 0; i < 100; ++i) {
    (void)(*m_cubes)[2].containers().promise(4 * kMiB, Urgency::usual);
    m_env.advance(std::chrono::milliseconds(100));
    check(m_cubes->flush());  // holes wait for a checkpoint
  }
  EXPECT_GT(allocated(2, 64 * kKiB), before + 500);
}

// Mostly: a flush of the simulated host takes hardly longer than a write, so little is held back for others.
TEST_F(CubeSetTest, WhatCubesCommitAtOnceIsFlushedAtOnce) {
  constexpr unsigned kRounds = 50;
  const uint64_t before = m_env.calls(vtkv::SimCall::sync);
  for (unsigned round = 0; round < kRounds; ++round) {
    EmptyTransaction transactions[kCubes];
    for (unsigned cube = 0; cube < kCubes; ++cube) {
      (*m_cubes)[cube].submit(&transactions[cube]);
    }
    m_env.advance(std::chrono::milliseconds(1));
    for (const EmptyTransaction& transaction : transactions) {
      ASSERT_TRUE(transaction.done);
    }
  }
  const uint64_t syncs = m_env.calls(vtkv::SimCall::sync) - before;
  EXPECT_LE(syncs, kRounds * kCubes * 2 / 3) << "of their own they would be " << kRounds * kCubes;
}

// The device may have dropped what another cube wrote and takes for synced.
TEST_F(CubeSetTest, NoneIsUsedOnceASyncFailedWhileTheyWereOpened) {
  unsigned failed = 0;
  for (uint64_t nth = 1;; ++nth) {
    m_cubes.reset();
    const uint64_t before = m_env.calls(vtkv::SimCall::sync);
    m_env.fail_nth(vtkv::SimCall::sync, nth, Status::from_errno(EIO, "sync"), false);
    const Status status = CubeSet::open(&m_env, "/cubes", m_options, {.cubes = kCubes, .goes_on = true}, &m_cubes);
    const bool struck = m_env.calls(vtkv::SimCall::sync) - before >= nth;
    m_env.clear_faults();
    if (!struck) {
      EXPECT_TRUE(status.ok()) << status.to_string();
      break;
    }
    EXPECT_FALSE(status.ok()) << "sync " << nth;
    ++failed;
  }
  EXPECT_GT(failed, kCubes);
}

TEST_F(CubeSetTest, OneThatDoesNotOpenIsNamed) {
  m_cubes.reset();
  check(m_env.remove_file("/cubes/3/containers/header"));
  const Status status = CubeSet::open(&m_env, "/cubes", m_options, {.cubes = kCubes}, &m_cubes);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.to_string().find("/cubes/3/"), std::string::npos) << status.to_string();
}

}  // namespace
}  // namespace swimstore
